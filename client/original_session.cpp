#include "client/original_session.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "client/look_up_notes.hpp"
#include "client/original_protocol.hpp"
#include "common/expr/expression.hpp"
#include "common/terminal.hpp"
#include "common/text_lines.hpp"
#include "common/wire/reply.hpp"
#include "common/wire/request.hpp"

namespace gloved::client {
namespace {

/// Parses a number of a reply; 0 if there is none.
double number_or_zero(std::string_view text) {
    const auto number = expr::parse_number(text);
    return number ? *number : 0.0;
}

class Session {
  public:
    Session(std::ostream& out, std::ostream& err, const Ask& ask)
        : out_(out), err_(err), ask_(ask) {}

    /// Prints the model and its load times, from STATS.
    Status print_model() {
        auto reply = ask_("STATS");
        if (!reply) return reply.error();
        if (!reply->status.ok) {
            refuse(reply->status);
            return {};
        }
        const auto value = [&](std::string_view key) {
            return value_of(*reply, key).value_or("?");
        };
        rows_ = number_or_zero(value("rows"));
        fmt::print(out_, "model {}: {} words, {} numbers each; engine {}\n", value("model"),
                   value("rows"), value("dim"), value("engine"));
        fmt::print(out_, "loaded: keys in {} ms, values in {} ms\n", value("load_keys_ms"),
                   value("load_values_ms"));
        out_.flush();
        return {};
    }

    Status answer(const OriginalQuery& query) {
        if (!query.compare) {
            auto reply = ask_near(query, "");
            if (!reply) return reply.error();
            if (*reply) print(query, **reply);
            return {};
        }
        auto cpu = ask_near(query, "cpu");
        if (!cpu) return cpu.error();
        if (!*cpu) return {};
        fmt::print(out_, "cpu\n");
        print(query, **cpu);
        auto own = ask_near(query, "");
        if (!own) return own.error();
        if (!*own) return {};
        fmt::print(out_, "{}\n", (*own)->status.field("engine"));
        print(query, **own);
        if ((*cpu)->status.field("generation") != (*own)->status.field("generation")) {
            fmt::print(out_, "the model was replaced in between: the answers are not compared\n");
            return {};
        }
        // Words and scores: the whole of what the exactness contract covers.
        fmt::print(
            out_, "{}\n",
            (*cpu)->body() == (*own)->body() ? "the answers are identical" : "THE ANSWERS DIFFER");
        return {};
    }

    /// Prints why a query is not answered.
    void report_error(std::string_view message) {
        all_answered_ = false;
        err_ << message_line("gloved-client", message);
    }

    bool all_answered() const { return all_answered_; }

  private:
    /// Returns the reply, or nothing after a refusal, which it prints.
    Result<std::optional<Reply>> ask_near(const OriginalQuery& query, std::string_view engine) {
        const std::string line = original_request(query, engine);
        if (line.size() > wire::kMaxLineBytes) {
            // The daemon would close the connection, and later queries would be lost too.
            report_error(fmt::format("too_long: the query takes {} bytes, the daemon at most {}",
                                     line.size(), wire::kMaxLineBytes));
            return std::optional<Reply>();
        }
        auto reply = ask_(line);
        if (!reply) return reply.error();
        if (reply->status.ok) {
            // Once for a query that is asked twice.
            if (engine.empty()) note(line, reply->status);
            return std::optional<Reply>(*std::move(reply));
        }
        refuse(reply->status);
        return std::optional<Reply>();
    }

    void note(std::string_view request, const wire::StatusLine& status) {
        for (const std::string& text : look_up_notes(request, status))
            err_ << message_line("gloved-client", text);
    }

    void refuse(const wire::StatusLine& status) {
        if (status.code == wire::code_name(ErrorCode::unknown_word)) {
            fmt::print(out_, "not found: {}\n", status.message);
        } else {
            report_error(fmt::format("{}: {}", status.code, status.message));
        }
    }

    void print(const OriginalQuery& query, const Reply& reply) {
        for (const std::string_view word :
             original_words(reply.lines(), query.words.front().word)) {
            fmt::print(out_, "{}\n", word);
        }
        const double ms = number_or_zero(reply.status.field("us")) / 1000;
        // The model may have been replaced since the start, so each answer has its number of rows.
        const auto own_rows = reply.status.field("rows");
        const double rows = own_rows.empty() ? rows_ : number_or_zero(own_rows);
        if (ms > 0 && rows > 0) {
            fmt::print(out_, "{:.3f} ms, {:.0f} distances per ms\n", ms, rows / ms);
        } else {
            fmt::print(out_, "{:.3f} ms\n", ms);
        }
    }

    std::ostream& out_;
    std::ostream& err_;
    const Ask& ask_;
    double rows_ = 0;
    bool all_answered_ = true;
};

}  // namespace

Result<bool> run_original_session(std::istream& in, std::ostream& out, std::ostream& err,
                                  const Ask& ask) {
    Session session(out, err, ask);
    if (Status introduced = session.print_model(); !introduced) return introduced.error();

    OriginalReader reader;
    bool is_first = true;
    for (std::string token; in >> token;) {
        if (std::exchange(is_first, false)) {
            const auto mark = begin_of_text(token, "stdin");
            if (!mark) return mark.error();
            token.erase(0, *mark);
            if (token.empty()) continue;
        }
        auto query = reader.feed(token);
        if (!query) {
            session.report_error(query.error().message);
        } else if (*query) {
            if (Status answered = session.answer(**query); !answered) return answered.error();
            out.flush();
        }
        if (!out) return Error{ErrorCode::io, "cannot write the answer"};
    }
    if (Status finished = reader.finish(); !finished)
        session.report_error(finished.error().message);
    return session.all_answered();
}

}  // namespace gloved::client
