// Where replies end, however the bytes are split.
#include "common/wire/reply_framer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gloved::tests {
namespace {

/// What a framer finds: «OK», the code or «JSON» of each reply, with its bytes.
std::vector<std::string> replies_in(const std::vector<std::string>& reads) {
    wire::ReplyFramer framer;
    std::vector<std::string> replies;
    std::string reply;
    for (const std::string& bytes : reads) {
        const char* begin = bytes.data();
        const char* const end = begin + bytes.size();
        while (begin < end) {
            const char* const reply_end = framer.take(begin, end);
            if (framer.broken()) {
                replies.emplace_back("broken");
                return replies;
            }
            reply.append(begin, reply_end != nullptr ? reply_end : end);
            if (reply_end == nullptr) break;
            const auto code = std::string(framer.ok() ? "OK" : framer.code());
            replies.push_back((framer.is_json() ? "JSON" : code) + "|" + reply);
            reply.clear();
            begin = reply_end;
        }
    }
    if (!reply.empty()) replies.push_back("incomplete|" + reply);
    return replies;
}

const std::string kLongHead =
    "OK 1 engine=cpu us=812 rows=10002 model=glove generation=ea8c1adfb46585e4\n";
const std::vector<std::string> kReplies = {
    "OK 0\n",
    "OK 0 us=3 rows=1 model=a generation=0000000000000000\n",
    "OK 3 us=1\nOK 5\nERR busy no\n\n",
    "ERR busy\n",
    kLongHead + "queen\t0.783441\n",
    "ERR unknown_word \"xyzzy\" is not in the model; near to it: \"OK 1\"\n",
    "OK 1\n" + std::string(300, 'x') + "\n",
    "{\"ok\":true,\"results\":[]}\n",
    "OK 0\n",
};

std::vector<std::string> right_replies() {
    std::vector<std::string> right;
    for (const std::string& reply : kReplies) {
        const std::string what = reply.starts_with("{")          ? "JSON"
                                 : reply.starts_with("OK")       ? "OK"
                                 : reply.starts_with("ERR busy") ? "busy"
                                                                 : "unknown_word";
        right.push_back(what + "|" + reply);
    }
    return right;
}

TEST(ReplyFramer, FindsRepliesWhereverTheyAreSplit) {
    std::string all;
    for (const std::string& reply : kReplies) all += reply;
    EXPECT_EQ(replies_in({all}), right_replies());
    for (std::size_t at = 1; at < all.size(); ++at)
        EXPECT_EQ(replies_in({all.substr(0, at), all.substr(at)}), right_replies()) << at;
    std::vector<std::string> bytes;
    for (const char byte : all) bytes.emplace_back(1, byte);
    EXPECT_EQ(replies_in(bytes), right_replies());
}

TEST(ReplyFramer, FindsTheEndOfALargeReply) {
    std::string large = "OK 65536 engine=cpu\n";
    for (int i = 0; i < 65536; ++i) large += "word" + std::to_string(i) + "\t0.5\n";
    std::vector<std::string> reads;
    for (std::size_t at = 0; at < large.size(); at += 4099) reads.push_back(large.substr(at, 4099));
    reads.back() += "OK 0\n";
    EXPECT_EQ(replies_in(reads), (std::vector<std::string>{"OK|" + large, "OK|OK 0\n"}));
    // One line less is not the end.
    large.resize(large.rfind('\n', large.size() - 2) + 1);
    EXPECT_EQ(replies_in({large}), (std::vector<std::string>{"incomplete|" + large}));
}

TEST(ReplyFramer, RefusesAnotherProtocol) {
    for (const char* text :
         {"\n", "OK\n", "OK \n", "OK x\n", "OK 1x\n", "OK -1\n", "ok 0\n", "ERR\n",
          "HTTP/1.1 400 Bad Request\r\n", "OK 99999999999999999999999999999999999999999\n"}) {
        const std::string line = text;
        EXPECT_EQ(replies_in({line}), (std::vector<std::string>{"broken"})) << text;
        for (std::size_t at = 1; at < line.size(); ++at) {
            EXPECT_EQ(replies_in({line.substr(0, at), line.substr(at)}).back(), "broken")
                << text << " at " << at;
        }
    }
}

}  // namespace
}  // namespace gloved::tests
