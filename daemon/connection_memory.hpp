// Limits on the memory of one connection, whatever it asks and however slowly it reads:
//
//   received, not yet parsed    a line and one read: 128 KiB
//   requests and answers        kMaxHeldBytes, and the one request that exceeds it: its line and
//                               its words, at most 320 KiB, 64 KiB more with certify=1 in
//                               JSON, and k hits of 16 bytes
//   text not yet written        two pieces of kPieceBytes
//
// That is 1 MiB at most, without the system's socket buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/expr/expression.hpp"
#include "common/format/model.hpp"
#include "common/wire/request.hpp"
#include "daemon/vocabulary.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Maximum number of unanswered requests of one connection; the daemon reads no further ones.
inline constexpr std::size_t kMaxUnanswered = 256;
/// Memory of a connection's requests and answers at which the daemon stops reading its input.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{384} * 1024;
/// Size of the pieces in which a long answer is rendered. A piece is rendered when the one before
/// it has been written.
inline constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
/// Bytes of answers that a session renders before other sessions of its loop get their turn.
inline constexpr std::size_t kTurnBytes = std::size_t{16} * 1024;
/// Bytes of one write to the socket. The peer has --write-timeout to make room for them.
/// PROTOCOL.md asks it to read four times as much in that time, because the system makes room only
/// for slices that are read completely.
inline constexpr std::size_t kSliceBytes = std::size_t{16} * 1024;
/// Memory of a request without its words, query and answer: Session::Slot and the allocator's
/// overhead.
inline constexpr std::size_t kRequestBytes = 1024;
/// Memory of a reply to STATS while it is made, at most.
inline constexpr std::size_t kStatisticsBytes = std::size_t{32} * 1024;
/// Limit on parsed_bytes. A parsed request may take sixty times the memory of its line; above this
/// limit, only the line is kept, and parsed again when an engine's thread takes the request.
inline constexpr std::size_t kMaxParsedBytes = std::size_t{16} * 1024;

/// Bytes of memory that a parsed request holds besides kRequestBytes.
inline std::size_t parsed_bytes(const wire::Request& request) {
    std::size_t bytes =
        request.terms.capacity() * sizeof(expr::Term) +
        request.arguments.capacity() * sizeof(wire::Argument) +
        (request.chosen.capacity() + request.words.capacity()) * sizeof(std::string) +
        request.values.capacity() * sizeof(float);
    const std::size_t inside = std::string().capacity();  // these need no allocation
    const auto add = [&](const std::string& text) {
        bytes += text.capacity() > inside ? text.capacity() : 0;
    };
    for (const expr::Term& term : request.terms) add(term.word);
    for (const std::string& word : request.chosen) add(word);
    for (const std::string& word : request.words) add(word);
    for (const wire::Argument& argument : request.arguments) {
        add(argument.text);
        bytes += argument.terms.capacity() * sizeof(expr::Term);
        for (const expr::Term& term : argument.terms) add(term.word);
    }
    add(request.options.prefix);
    for (const auto* names : {&request.options.within, &request.options.without}) {
        bytes += names->capacity() * sizeof(std::string);
        for (const std::string& name : *names) add(name);
    }
    return bytes;
}

/// Bytes that one byte of a word becomes at most when the word is quoted: \xHH.
inline constexpr std::size_t kMaxQuotedBytes = 4;

/// Estimates Audited::held_bytes for a request of this line: a byte of a word may become an escape,
/// and the space before a short one a sign and quotes.
inline std::size_t expected_audited_bytes(std::string_view line) {
    return 2 * std::min(kMaxQuotedBytes * line.size(), wire::kMaxLineBytes);
}

/// Estimates the bytes of memory of a request's answer before it exists. Later
/// TextSource::held_bytes is exact.
inline std::size_t expected_answer_bytes(const wire::Request& request, const format::Model& model) {
    const std::size_t eligible = request.chosen.empty() ? model.rows() : request.chosen.size();
    const std::size_t lines = std::min(request.options.k, eligible);
    switch (request.verb) {
        case wire::Verb::near:
        case wire::Verb::nearvec:
        case wire::Verb::analogy:
            return lines * sizeof(kernels::Hit);
        case wire::Verb::prefix:
            return lines * sizeof(kernels::Row);
        case wire::Verb::vec:
            return request.words.size() * sizeof(kernels::Row);
        case wire::Verb::matrix:
            return kPieceBytes + request.words.size() * sizeof(kernels::Row);
        case wire::Verb::has:
            return kMaxQuotedBytes * parsed_bytes(request);
        default:
            return 0;
    }
}

}  // namespace gloved::daemon
