#include "tests/integration/odd_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/support/gzip.hpp"
#include "tests/support/tar.hpp"
#include "tests/support/zip.hpp"

namespace gloved::tests {
namespace {

using Arguments = std::vector<std::string>;

std::size_t number(const std::string& text) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') throw std::runtime_error("no number: " + text);
    return value;
}

std::string zip_of(const Arguments& arguments, unsigned method, unsigned flags = 0) {
    if (arguments.size() % 2 != 0) throw std::runtime_error("a member without content");
    std::vector<ZipEntry> entries;
    for (std::size_t i = 0; i < arguments.size(); i += 2)
        entries.push_back({arguments[i], arguments[i + 1], method, flags});
    return zip_archive(entries);
}

std::string tar_of(const Arguments& arguments, unsigned type) {
    if (arguments.size() % 2 != 0) throw std::runtime_error("a member without content");
    std::vector<TarEntry> entries;
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
        const bool folder = arguments[i].ends_with('/');
        entries.push_back({arguments[i], arguments[i + 1], folder ? AE_IFDIR : type});
    }
    return tar_archive(entries);
}

std::string float_bytes(const Arguments& arguments) {
    std::string bytes;
    for (const std::string& argument : arguments) {
        const float value = std::strtof(argument.c_str(), nullptr);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
}

/// As NumPy lays it out, with the header `fields`.
std::string npy(const std::string& fields, const std::string& numbers) {
    constexpr std::size_t kBytes = 118;  // 128 with what stands before
    std::string header = fields;
    header.resize(kBytes - 1, ' ');
    return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(kBytes) + '\0' + header + '\n' +
           numbers;
}

std::string safetensors(const std::string& header, const std::string& numbers) {
    const std::uint64_t bytes = header.size();
    return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + header + numbers;
}

std::string utf16(const std::string& text) {
    std::string bytes = "\xFF\xFE";
    for (const char c : text) bytes += {c, '\0'};
    return bytes;
}

const std::map<std::string, std::function<std::string(const Arguments&)>, std::less<>>&
functions() {
    static const std::map<std::string, std::function<std::string(const Arguments&)>, std::less<>>
        all = {
            {"repeat",
             [](const Arguments& a) {
                 std::string text;
                 const std::size_t times = number(a.at(0));
                 text.reserve(times * a.at(1).size());
                 for (std::size_t i = 0; i < times; ++i) text += a[1];
                 return text;
             }},
            {"gzip", [](const Arguments& a) { return gzip(a.at(0)); }},
            {"bz2", [](const Arguments& a) { return bzip2(a.at(0)); }},
            {"xz", [](const Arguments& a) { return xz(a.at(0)); }},
            {"zstd", [](const Arguments& a) { return zstd(a.at(0)); }},
            {"tar", [](const Arguments& a) { return tar_of(a, AE_IFREG); }},
            {"links", [](const Arguments& a) { return tar_of(a, AE_IFLNK); }},
            {"zip", [](const Arguments& a) { return zip_of(a, kZipDeflated); }},
            {"stored", [](const Arguments& a) { return zip_of(a, kZipStored); }},
            {"streamed",
             [](const Arguments& a) { return zip_of(a, kZipDeflated, kZipSizesBehindData); }},
            {"utf8_names",
             [](const Arguments& a) { return zip_of(a, kZipDeflated, kZipUtf8Name); }},
            {"method",
             [](const Arguments& a) {
                 return zip_of({a.begin() + 1, a.end()}, static_cast<unsigned>(number(a.at(0))));
             }},
            {"encrypted",
             [](const Arguments& a) { return zip_of(a, kZipDeflated, kZipEncrypted); }},
            {"zip64", [](const Arguments& a) { return zip64_archive(a.at(0), a.at(1)); }},
            {"first", [](const Arguments& a) { return a.at(1).substr(0, number(a[0])); }},
            {"without_last",
             [](const Arguments& a) { return a.at(1).substr(0, a[1].size() - number(a[0])); }},
            {"replaced",
             [](const Arguments& a) {
                 std::string text = a.at(2);
                 const std::size_t at = text.rfind(a[0]);
                 if (at == std::string::npos) throw std::runtime_error("nothing to replace");
                 return text.replace(at, a[0].size(), a[1]);
             }},
            {"f32", float_bytes},
            {"npy", [](const Arguments& a) { return npy(a.at(0), a.at(1)); }},
            {"safetensors", [](const Arguments& a) { return safetensors(a.at(0), a.at(1)); }},
            {"utf16", [](const Arguments& a) { return utf16(a.at(0)); }},
        };
    return all;
}

/// Reads an expression from left to right.
class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::string whole() {
        std::string value = sum();
        if (at_ != text_.size()) fail("nothing more");
        return value;
    }

  private:
    [[noreturn]] void fail(const std::string& expected) const {
        throw std::runtime_error(fmt::format("{} expected at «{}»", expected, text_.substr(at_)));
    }
    bool take(char c) {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    std::string sum() {
        std::string value = term();
        while (take('+')) value += term();
        return value;
    }

    std::string term() {
        if (take('"')) return quoted();
        const std::size_t end = std::min(text_.find_first_of(" (),+\"", at_), text_.size());
        const std::string name(text_.substr(at_, end - at_));
        if (name.empty()) fail("a term");
        at_ = end;
        if (!take('(')) return name;  // a number
        const auto function = functions().find(name);
        if (function == functions().end())
            throw std::runtime_error("no function is called " + name);
        Arguments arguments;
        while (!take(')')) {
            if (!arguments.empty() && !take(',')) fail("a comma");
            (void)take(' ');
            arguments.push_back(sum());
        }
        return function->second(arguments);
    }

    std::string quoted() {
        std::string value;
        for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
            if (text_[at_] != '\\') {
                value += text_[at_];
                continue;
            }
            const char escape = ++at_ < text_.size() ? text_[at_] : '\0';
            if (escape == 'x') {
                value += static_cast<char>(
                    std::stoi(std::string(text_.substr(at_ + 1, 2)), nullptr, 16));
                at_ += 2;
                continue;
            }
            constexpr std::string_view kLetters = "nrt0\\\"";
            const std::size_t found = kLetters.find(escape);
            if (found == std::string_view::npos) fail("an escape");
            value += "\n\r\t\0\\\""[found];
        }
        if (!take('"')) fail("a quote");
        return value;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

/// The pieces of `text` between the places where `separator` stands; none of an empty one or «-».
std::vector<std::string> split(const std::string& text, const std::string& separator) {
    std::vector<std::string> pieces;
    if (text.empty() || text == "-") return pieces;
    std::size_t at = 0;
    for (std::size_t end = 0; (end = text.find(separator, at)) != std::string::npos;
         at = end + separator.size()) {
        pieces.push_back(text.substr(at, end - at));
    }
    pieces.push_back(text.substr(at));
    return pieces;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const OddFile& file) { return out << file.name; }

std::string content_of(std::string_view expression) { return Parser(expression).whole(); }

std::vector<OddFile> read_odd_files(const std::string& path) {
    std::ifstream in(path);
    std::vector<OddFile> files;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.empty() || line[0] == '#') continue;
        const auto columns = split(line, "\t");
        if (columns.size() != 6) {
            throw std::runtime_error(
                fmt::format("{}:{}: {} columns, 6 expected", path, number, columns.size()));
        }
        const std::string words = columns[4] == "-" ? "" : content_of(columns[4]);
        files.push_back({columns[0], columns[1], split(columns[2], " "), std::stoi(columns[3]),
                         words, split(columns[5], " | ")});
    }
    return files;
}

}  // namespace gloved::tests
