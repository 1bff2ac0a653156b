// gloved: reads options, serves the models or checks them, and returns an exit status.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/elapsed.hpp"
#include "common/files.hpp"
#include "common/process_memory.hpp"
#include "common/program_main.hpp"
#include "common/quoting.hpp"
#include "common/result.hpp"
#include "common/socket_places.hpp"
#include "daemon/emergency_exit.hpp"
#include "daemon/log.hpp"
#include "daemon/model_loader.hpp"
#include "daemon/options.hpp"
#include "daemon/server.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/settings.hpp"
#include "daemon/socket_path.hpp"

namespace {

using namespace gloved;
using daemon::log_error;
using daemon::log_info;
using daemon::Settings;

constexpr int kDone = 0;
constexpr int kFault = 1;
constexpr int kUsage = 2;

const auto kStarted = std::chrono::steady_clock::now();

double ms_since_start() { return ms_since(kStarted); }

/// --check: checks the models and prints a line for each.
Result<int> check(const Settings& settings) {
    daemon::PipeTexts pipes;
    for (const daemon::ModelSetting& setting : settings.models) {
        const auto checked = daemon::check_model(setting, settings, pipes);
        if (!checked) return checked.error();
        std::cout << without_control_bytes(*checked) << "\n";
    }
    if (!std::cout.flush()) return Error{ErrorCode::io, "cannot write the result"};
    return kDone;
}

/// Takes the socket that a service manager passed, or else binds one at `path`.
Result<daemon::ListeningSocket> listen(const std::string& path) {
    auto passed = daemon::passed_socket();
    if (!passed) return passed.error();
    if (*passed) return daemon::ListeningSocket::adopt(**std::move(passed));
    const auto place = socket_to_listen_at(path, ::geteuid() == 0);
    if (!place) return place.error();
    // Makes the directory as a service manager would, whatever the umask; one that is there keeps
    // its mode. If this fails, binding says why.
    if (*place == kSystemSocket && ::mkdir("/run/gloved", 0755) == 0)
        (void)::chmod("/run/gloved", 0755);
    return daemon::ListeningSocket::bind(*place);
}

/// Serves until told to stop; the exit status. Error: what kept it from starting.
Result<int> serve(const Settings& settings) {
    // The socket comes before the models: a second daemon fails at once, and clients may connect
    // while the models load.
    auto listening = listen(settings.socket_path);
    if (!listening) return listening.error();
    const std::string address = listening->address();
    const auto loader = [&settings, pipes = daemon::PipeTexts()](
                            const daemon::ModelSetting& setting,
                            const daemon::LoadedModel* old) mutable {
        return daemon::load_model(setting, settings, pipes, old);
    };
    daemon::Server server(settings, loader, *std::move(listening));
    const bool served = server.run([&address] {
        log_info("ready after {:.0f} ms; listening on {}", ms_since_start(), address);
    });
    log_info("stopped");
    if (served && server.has_useless_threads()) {
        daemon::end_log();
        std::_Exit(kDone);
    }
    return served ? kDone : kFault;
}

int run_program(int argc, char** argv) {
    daemon::block_signals();
    daemon::install_out_of_memory_handler();
    auto options = daemon::read_options(argc, argv, std::cout);
    if (!options) {
        // journald may read this, and the options may be any bytes.
        const std::string_view prefix = daemon::log_prefix_of_errors();
        std::cerr << prefix << "gloved: " << without_control_bytes(options.error().message) << "\n"
                  << prefix << "Try 'gloved --help'.\n";
        return kUsage;
    }
    if (!*options) return kDone;
    auto& [settings, log_level, only_check] = **options;
    daemon::start_log(log_level);
    daemon::install_sigbus_handler();
    ::signal(SIGPIPE, SIG_IGN);
    map_large_blocks();
    raise_descriptor_limit();
    // A check leaves nothing behind that a signal's handler would have to remove.
    if (only_check) daemon::unblock_signals();
    try {
        const Result<int> done = only_check ? check(settings) : serve(settings);
        if (!done) log_error("{}", done.error().message);
        daemon::end_log();
        return done ? *done : kFault;
    } catch (const boost::system::system_error& error) {
        // Of asio, which needs descriptors before there is a connection.
        const bool lacks_descriptor = error.code() == std::errc::too_many_files_open;
        log_error("{}{}{}", error.what(), lacks_descriptor ? "; " : "",
                  lacks_descriptor ? kMoreDescriptors : "");
    } catch (const std::exception& error) {
        log_error("{}", explain(error));
    }
    daemon::end_log();
    return kFault;
}

}  // namespace

int main(int argc, char** argv) { return gloved::program_main("gloved", run_program, argc, argv); }
