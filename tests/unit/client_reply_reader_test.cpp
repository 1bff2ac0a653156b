#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "client/reply_reader.hpp"

namespace gloved::client {
namespace {

using wire::kMaxReplyLineBytes;

/// What came out of the reader: bytes between «[» and «]» where a reply begins and ends, «!CODE»
/// behind a refusal.
std::string drain(ReplyReader& reader, std::size_t max_bytes = std::string::npos) {
    std::string out;
    while (true) {
        const auto piece = reader.next(max_bytes);
        if (!piece) return out + "fault: " + piece.error().message;
        if (!*piece) return out;
        out += (*piece)->first ? "[" : "";
        out += (*piece)->bytes;
        out += (*piece)->last ? "]" : "|";
        if (!(*piece)->status->ok) out += "!" + (*piece)->status->code;
    }
}

std::string read(const std::string& bytes) {
    ReplyReader reader;
    reader.append(bytes);
    return drain(reader);
}

TEST(ReplyReader, CutsTextAndJson) {
    EXPECT_EQ(read("OK 0\nOK 2 us=5\na\t1\nb\t2\nERR busy too many\nOK 1\nx\n"),
              "[OK 0\n][OK 2 us=5\na\t1\nb\t2\n][ERR busy too many\n]!busy[OK 1\nx\n]");
    EXPECT_EQ(read("{\"ok\":true,\"results\":[]}\n{\"ok\":false,\"code\":\"busy\",\"message\":"
                   "\"m\"}\nOK 0\n"),
              "[{\"ok\":true,\"results\":[]}\n][{\"ok\":false,\"code\":\"busy\",\"message\":\"m\"}"
              "\n]!busy[OK 0\n]");
}

TEST(ReplyReader, DoesNotMindWhereBytesAreCut) {
    const std::string bytes =
        "OK 2 us=5\na\t1\nb\t2\n{\"ok\":true,\"results\":[]}\nERR busy "
        "m\n{\"ok\":false,\"code\":\"a\",\"message\":\"\"}\nOK 0\n";
    for (std::size_t chunk = 1; chunk < bytes.size(); ++chunk) {
        ReplyReader reader;
        std::string out;
        for (std::size_t i = 0; i < bytes.size(); i += chunk) {
            reader.append(std::string_view(bytes).substr(i, chunk));
            out += drain(reader);
        }
        EXPECT_EQ(out, read(bytes)) << chunk;
    }
}

TEST(ReplyReader, DoesNotMindHowAnObjectIsSpelt) {
    EXPECT_EQ(read("{ \"verb\": \"PING\", \"ok\": true }\n"),
              "[{ \"verb\": \"PING\", \"ok\": true }\n]");
}

TEST(ReplyReader, SaysWhatARefusalSays) {
    ReplyReader reader;
    reader.append(
        "{\"ok\":false,\"code\":\"unknown_word\",\"message\":\"\\\"King\\\" is "
        "unknown\",\"word\":\"King\"}\n");
    const auto piece = reader.next();
    ASSERT_TRUE(piece && *piece);
    EXPECT_EQ((*piece)->status->code, "unknown_word");
    EXPECT_EQ((*piece)->status->message, "\"King\" is unknown");
}

TEST(ReplyReader, PassesOnALargeReplyBeforeItsEnd) {
    ReplyReader reader;
    reader.append("OK 3\nlong\nlo");
    EXPECT_EQ(drain(reader, 12), "[OK 3\nlong\nlo|");
    reader.append("nger\nx");
    EXPECT_EQ(drain(reader, 12), "") << "too little to be worth it";
    reader.append("\nOK 0\n");
    EXPECT_EQ(drain(reader, 12), "nger\nx\n][OK 0\n]");
    reader.append("{\"ok\":true,\"results\":[1,2");
    EXPECT_EQ(drain(reader, 12), "[{\"ok\":true,\"results\":[1,2|");
    reader.append("]}\n");
    EXPECT_EQ(drain(reader, 12), "]}\n]");
}

TEST(ReplyReader, AReplyThatIsThereIsWholeHoweverLarge) {
    ReplyReader reader;
    reader.append("OK 2\nlong\nlonger\n");
    EXPECT_EQ(drain(reader, 4), "[OK 2\nlong\nlonger\n]");
}

TEST(ReplyReader, KnowsAForeignPeer) {
    for (const char* bytes :
         {"HTTP/1.1 400 Bad Request\r\n\r\n", "\n", "{}\n", "{\"ok\":false}\n",
          "{\"ok\":false,\"code\":1,\"message\":\"\"}\n",
          "{\"ok\":1,\"code\":\"a\",\"message\":\"\"}\n", "{nonsense\n", "[1]\n"}) {
        const std::string seen = read(bytes);
        EXPECT_NE(seen.find("is this the socket of a gloved daemon?"), std::string::npos)
            << bytes << seen;
    }
    ReplyReader reader;
    reader.append(std::string(kMaxReplyLineBytes + 1, 'a'));
    EXPECT_NE(drain(reader).find("a line of more than"), std::string::npos);
    for (const std::size_t max_bytes : {std::size_t{1} << 20, std::string::npos}) {
        ReplyReader endless;
        std::string seen;
        for (int i = 0; i < 5 && seen.find("fault") == std::string::npos; ++i) {
            endless.append((i == 0 ? "OK 1\n" : "") + std::string(1 << 20, 'a'));
            seen = drain(endless, max_bytes);
        }
        EXPECT_NE(seen.find("fault: a line of more than"), std::string::npos) << max_bytes;
    }
    ReplyReader lines;
    std::string whole = "OK 2\n";
    for (int i = 0; i < 2; ++i) whole += std::string(kMaxReplyLineBytes, 'a') + '\n';
    lines.append(whole);
    EXPECT_EQ(drain(lines), "[" + whole + "]");
    ReplyReader object;
    object.append("{" + std::string(kMaxReplyLineBytes, ' '));
    EXPECT_NE(drain(object).find("is this the socket of a gloved daemon?"), std::string::npos);
}

}  // namespace
}  // namespace gloved::client
