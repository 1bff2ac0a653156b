#include "tools/verify/download.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "common/byte_count.hpp"
#include "common/error_with.hpp"
#include "common/input_file.hpp"
#include "common/progress.hpp"
#include "tools/source/stanford.hpp"

namespace gloved::verify {
namespace {

using source::PublishedFile;

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

constexpr std::string_view kOrigin = "https://nlp.stanford.edu/projects/glove/";

/// SHA-256 of what is appended.
class Sha256 {
  public:
    Sha256() : context_(EVP_MD_CTX_new()) {
        if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
            throw std::bad_alloc();
    }
    void append(std::span<const char> bytes) {
        EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
    }
    std::string digits() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned size = 0;
        EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
        std::string text;
        for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
        return text;
    }

  private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

/// How the size of a file differs from that of a published one of the same name.
std::string compare_sizes(std::uint64_t bytes, const PublishedFile& published) {
    if (published.bytes == 0 || bytes == published.bytes) return {};
    return fmt::format("; it should have {} bytes and {}", with_commas(published.bytes),
                       bytes < published.bytes ? "ends too early" : "has more");
}

/// What is said of a file that has the name of `named`, of which no checksum is published: one
/// project names it, or nobody.
DownloadVerdict judge_by_name(const Download& download, const PublishedFile& named,
                              const std::string& figures) {
    using State = DownloadVerdict::State;
    const std::uint64_t fewest = source::fewest_bytes(named);
    if (download.bytes < fewest) {
        return {State::differs, std::string(named.name),
                fmt::format("is not {}, which has {} bytes at least: {}; fetch it again from {}",
                            named.name, with_commas(fewest), figures, kOrigin)};
    }
    std::string detail =
        fmt::format("may be {}, of which no checksum is published: {}", named.name, figures);
    if (!named.sha256.empty()) {
        detail += fmt::format(
            "; one project names SHA-256 {}{}", named.sha256,
            named.bytes == 0 ? "" : fmt::format(" and {} bytes", with_commas(named.bytes)));
    }
    if (named.name.ends_with(".zip")) detail += "; unzip -t checks it by the sums in it";
    return {State::unknown, std::string(named.name), std::move(detail)};
}

}  // namespace

Result<Download> read_download(const std::string& path, const std::atomic<bool>& stop) {
    auto file = InputFile::open(path, NoWriter::wait, &stop);
    if (!file) return file.error();
    (void)::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Progress progress("reading", file->size_bytes());
    Sha256 sha256;
    Download download{path, 0, {}};
    std::vector<char> buffer(kReadBytes);
    while (true) {
        const auto count = file->read(buffer);
        if (!count) return count.error();
        if (*count == 0) break;
        sha256.append(std::span(buffer).first(*count));
        download.bytes += *count;
        progress.update(download.bytes);
    }
    download.sha256 = sha256.digits();
    return download;
}

DownloadVerdict judge(const Download& download, std::span<const PublishedFile> published) {
    using State = DownloadVerdict::State;
    const std::string figures =
        fmt::format("{} bytes, SHA-256 {}", with_commas(download.bytes), download.sha256);
    const auto same = std::ranges::find(published, download.sha256, &PublishedFile::sha256);
    if (same != published.end()) {
        return {State::same, std::string(same->name),
                fmt::format("is {} as {}: {}", same->name,
                            same->of_one_project ? "one project names it; no checksum is published"
                                                 : "published",
                            figures)};
    }
    const std::string_view name =
        std::string_view(download.path).substr(download.path.rfind('/') + 1);  // npos + 1 is 0
    const auto named = std::ranges::find(published, name, &PublishedFile::name);
    if (named != published.end() && (named->sha256.empty() || named->of_one_project))
        return judge_by_name(download, *named, figures);
    if (named != published.end()) {
        return {State::differs, std::string(name),
                fmt::format("is not {} as published, whose SHA-256 is {}: {}{}; fetch it again "
                            "from {}",
                            name, named->sha256, figures, compare_sizes(download.bytes, *named),
                            kOrigin)};
    }
    std::string known;
    for (const PublishedFile& file : published) {
        if (file.sha256.empty()) continue;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", file.name);
    }
    return {State::unknown,
            {},
            fmt::format("is none of the files whose checksums are known ({}): {}", known, figures)};
}

}  // namespace gloved::verify
