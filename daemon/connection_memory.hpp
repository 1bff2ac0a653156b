// How much memory one connection may hold, whatever it asks and however slowly it reads. Every
// bound is in this file:
//
//   read and not handled     a line and one read: 128 KiB
//   requests and answers     kMaxHeldBytes, and the one request that passed it: its line and what
//                            is made of its words, 320 KiB at most; beside that k hits of 16 bytes
//   text not yet written     two pieces of kPieceBytes
//
// That is less than 1 MiB. The system's socket buffer comes on top.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/format/model.hpp"
#include "common/wire/request.hpp"
#include "kernels/engine.hpp"

namespace gloved::daemon {

/// Requests of one connection that are taken on before the first one is answered.
inline constexpr std::size_t kMaxUnanswered = 256;
/// What the requests and answers of one connection may hold before further input is left unread.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{384} * 1024;
/// Text of an answer is made in pieces of about this size, when the one before has been taken.
inline constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
/// What is handed to the system at once. The peer has --write-timeout to make room for it.
///
/// A quarter of what PROTOCOL.md says that a peer has to take in that time: the system makes room
/// by whole slices, and one that is read in part, at the beginning and at the end of the time,
/// makes none.
inline constexpr std::size_t kSliceBytes = std::size_t{16} * 1024;
/// For each request, whatever it asks: its places in the session and in the engine's queue, with
/// what the allocator adds.
inline constexpr std::size_t kRequestBytes = 1024;
/// A parsed request may take forty times the bytes of its line. From this size on the line is kept
/// until the request's turn comes.
inline constexpr std::size_t kMaxParsedBytes = std::size_t{16} * 1024;

/// Memory that a parsed request holds beside kRequestBytes.
inline std::size_t parsed_bytes(const wire::Request& request) {
    std::size_t bytes = request.terms.capacity() * sizeof(expr::Term) +
                        request.words.capacity() * sizeof(std::string) +
                        request.values.capacity() * sizeof(float);
    const std::size_t inside = std::string().capacity();  // so many bytes need no memory of their
                                                          // own
    const auto add = [&](const std::string& text) {
        bytes += text.capacity() > inside ? text.capacity() : 0;
    };
    for (const expr::Term& term : request.terms) add(term.word);
    for (const std::string& word : request.words) add(word);
    add(request.options.prefix);
    return bytes;
}

/// A byte of a word, quoted: \xHH.
inline constexpr std::size_t kMaxQuotedBytes = 4;

/// About the memory that a request of a model will hold when it is answered; TextSource::held_bytes
/// is exact then.
inline std::size_t expected_answer_bytes(const wire::Request& request, const format::Model& model) {
    const std::size_t lines = std::min(request.options.k, model.rows());
    switch (request.verb) {
        case wire::Verb::near:
        case wire::Verb::nearvec:
        case wire::Verb::analogy:
            return lines * sizeof(kernels::Hit) + request.terms.size() * sizeof(kernels::Row);
        case wire::Verb::prefix:
            return lines * sizeof(kernels::Row);
        case wire::Verb::matrix:
            return kPieceBytes + request.words.size() * sizeof(kernels::Row);
        case wire::Verb::has:
            return kMaxQuotedBytes * parsed_bytes(request);
        default:
            return 0;
    }
}

}  // namespace gloved::daemon
