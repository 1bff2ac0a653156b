#include "tools/verify/download.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
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

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

constexpr std::string_view kOrigin = "https://nlp.stanford.edu/projects/glove/";

// Stanford publishes no checksums. Each of these is named alike by several independent projects
// that fetch the files, unless of_one_project.
constexpr std::array kPublished = {
    PublishedFile{"glove.6B.zip",
                  "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb", 862'182'613},
    PublishedFile{"glove.6B.100d.txt",
                  "95dde4dfd627ab26608d33e76d1195ec059734bd29089ea52cadb08d07c64544", 0},
    PublishedFile{"glove.42B.300d.zip",
                  "03d5d7fa28e58762ace4b85fb71fe86a345ef0b5ff39f5390c14869da0fc1970", 0},
    PublishedFile{"glove.840B.300d.zip",
                  "c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f",
                  2'176'768'927},
    PublishedFile{"glove.840B.300d.txt",
                  "9641ef45628fd8c5c0bc555c8944f7bad7bce36ae7be3cafff0bb109fe60883e", 0},
    PublishedFile{"glove.twitter.27B.zip",
                  "792af52f795d1a32c9842a3240f5f3fe5e941a8ff6df5eb0f9d668092ebc019c", 0},
    PublishedFile{"glove.2024.wikigiga.50d.zip",
                  "afa5e258ee38272db6394547c4b075ecbb7b2164e98542c8d1237b6029b35a65", 0, true},
    PublishedFile{"wiki_giga_2024_50_MFT20_vectors_seed_123_alpha_0.75_eta_0.075_combined.txt",
                  "16c4253cb9a19045dcdc758b6a1eda52d3c37b894dea2601a45046b4300a8d10", 842'192'707,
                  true},
};

// Of these nobody names a checksum.
constexpr std::string_view kWithoutChecksum[] = {
    "glove.6B.50d.txt",
    "glove.6B.200d.txt",
    "glove.6B.300d.txt",
    "glove.42B.300d.txt",
    "glove.twitter.27B.25d.txt",
    "glove.twitter.27B.50d.txt",
    "glove.twitter.27B.100d.txt",
    "glove.twitter.27B.200d.txt",
    "glove.2024.dolma.300d.zip",
    "dolma_300_2024_1.2M.100_combined.txt",
    "glove.2024.wikigiga.300d.zip",
    "wiki_giga_2024_300_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05_combined.txt",
    "glove.2024.wikigiga.200d.zip",
    "wiki_giga_2024_200_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05_combined.txt",
    "glove.2024.wikigiga.100d.zip",
    "wiki_giga_2024_100_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05.050_combined.txt",
};

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

/// What is said of a file that has the name of one without a published checksum. `named`: what one
/// project names of it, if any does.
DownloadVerdict judge_by_name(const Download& download, std::string_view name,
                              const PublishedFile* named, const std::string& figures) {
    using State = DownloadVerdict::State;
    const std::uint64_t fewest = source::fewest_bytes(name);
    if (download.bytes < fewest) {
        return {State::differs, std::string(name),
                fmt::format("is not {}, which has {} bytes at least: {}; fetch it again from {}",
                            name, with_commas(fewest), figures, kOrigin)};
    }
    std::string detail =
        fmt::format("may be {}, of which no checksum is published: {}", name, figures);
    if (named != nullptr) {
        detail += fmt::format(
            "; one project names SHA-256 {}{}", named->sha256,
            named->bytes == 0 ? "" : fmt::format(" and {} bytes", with_commas(named->bytes)));
    }
    if (name.ends_with(".zip")) detail += "; unzip -t checks it by the sums in it";
    return {State::unknown, std::string(name), std::move(detail)};
}

}  // namespace

std::span<const PublishedFile> published_files() { return kPublished; }

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
    if (named != published.end() && named->of_one_project)
        return judge_by_name(download, name, &*named, figures);
    if (named != published.end()) {
        return {State::differs, std::string(name),
                fmt::format("is not {} as published, whose SHA-256 is {}: {}{}; fetch it again "
                            "from {}",
                            name, named->sha256, figures, compare_sizes(download.bytes, *named),
                            kOrigin)};
    }
    if (std::ranges::find(kWithoutChecksum, name) != std::end(kWithoutChecksum))
        return judge_by_name(download, name, nullptr, figures);
    std::string known;
    for (const PublishedFile& file : published)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", file.name);
    return {State::unknown,
            {},
            fmt::format("is none of the files whose checksums are known ({}): {}", known, figures)};
}

}  // namespace gloved::verify
