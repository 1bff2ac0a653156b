#include "tools/source/stanford.hpp"

#include <array>

#include "common/ascii.hpp"

namespace gloved::source {
namespace {

// https://nlp.stanford.edu/projects/glove/, which publishes no checksums. Each of these is named
// alike by several independent projects that fetch the files, unless of_one_project.
constexpr std::array kPublished = {
    PublishedFile{.name = "glove.6B.zip",
                  .sha256 = "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
                  .bytes = 862'182'613},
    PublishedFile{.name = "glove.6B.50d.txt", .dim = 50, .lines = 400'000},
    PublishedFile{.name = "glove.6B.100d.txt",
                  .sha256 = "95dde4dfd627ab26608d33e76d1195ec059734bd29089ea52cadb08d07c64544",
                  .dim = 100,
                  .lines = 400'000},
    PublishedFile{.name = "glove.6B.200d.txt", .dim = 200, .lines = 400'000},
    PublishedFile{.name = "glove.6B.300d.txt", .dim = 300, .lines = 400'000},
    PublishedFile{.name = "glove.42B.300d.zip",
                  .sha256 = "03d5d7fa28e58762ace4b85fb71fe86a345ef0b5ff39f5390c14869da0fc1970"},
    PublishedFile{.name = "glove.42B.300d.txt", .dim = 300, .lines = 1'917'494},
    PublishedFile{.name = "glove.840B.300d.zip",
                  .sha256 = "c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f",
                  .bytes = 2'176'768'927},
    PublishedFile{.name = "glove.840B.300d.txt",
                  .sha256 = "9641ef45628fd8c5c0bc555c8944f7bad7bce36ae7be3cafff0bb109fe60883e",
                  .dim = 300,
                  .lines = 2'196'017},
    PublishedFile{.name = "glove.twitter.27B.zip",
                  .sha256 = "792af52f795d1a32c9842a3240f5f3fe5e941a8ff6df5eb0f9d668092ebc019c"},
    PublishedFile{.name = "glove.twitter.27B.25d.txt", .dim = 25, .lines = 1'193'514},
    PublishedFile{.name = "glove.twitter.27B.50d.txt", .dim = 50, .lines = 1'193'514},
    PublishedFile{.name = "glove.twitter.27B.100d.txt", .dim = 100, .lines = 1'193'514},
    PublishedFile{.name = "glove.twitter.27B.200d.txt", .dim = 200, .lines = 1'193'514},
    PublishedFile{.name = "glove.2024.wikigiga.50d.zip",
                  .sha256 = "afa5e258ee38272db6394547c4b075ecbb7b2164e98542c8d1237b6029b35a65",
                  .of_one_project = true,
                  .dim = 50,
                  .lines = 1'291'147},
    PublishedFile{
        .name = "wiki_giga_2024_50_MFT20_vectors_seed_123_alpha_0.75_eta_0.075_combined.txt",
        .sha256 = "16c4253cb9a19045dcdc758b6a1eda52d3c37b894dea2601a45046b4300a8d10",
        .bytes = 842'192'707,
        .of_one_project = true},
    PublishedFile{.name = "glove.2024.dolma.300d.zip"},
    PublishedFile{.name = "dolma_300_2024_1.2M.100_combined.txt"},
    PublishedFile{.name = "glove.2024.wikigiga.300d.zip"},
    PublishedFile{
        .name = "wiki_giga_2024_300_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05_combined.txt"},
    PublishedFile{.name = "glove.2024.wikigiga.200d.zip"},
    PublishedFile{
        .name = "wiki_giga_2024_200_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05_combined.txt"},
    PublishedFile{.name = "glove.2024.wikigiga.100d.zip"},
    PublishedFile{
        .name = "wiki_giga_2024_100_MFT20_vectors_seed_2024_alpha_0.75_eta_0.05.050_combined.txt"},
};

/// The files of 2024. Of most, no number of lines is known.
constexpr std::string_view kOf2024 = "2024";
constexpr std::size_t kEndingBytes = 4;  // .txt or .zip

std::string name_of(const PublishedFile& file) {
    return std::string(file.name.substr(0, file.name.size() - kEndingBytes));
}

}  // namespace

std::span<const PublishedFile> published_files() { return kPublished; }

std::optional<KnownText> known_text(std::uint64_t lines, std::size_t dim) {
    for (const PublishedFile& file : kPublished) {
        if (file.lines == 0 || file.dim != dim) continue;
        if (file.lines == lines) return KnownText{name_of(file), lines};
        // Some copies of glove.6B carry one line more.
        if (file.lines + 1 == lines && file.name.starts_with("glove.6B."))
            return KnownText{name_of(file) + " with <unk>", lines};
    }
    return std::nullopt;
}

std::optional<KnownText> maybe_truncated(std::string_view name, std::uint64_t lines,
                                         std::size_t dim) {
    const std::string base = ascii_lower_case(name.substr(name.rfind('/') + 1));  // npos + 1 is 0
    const auto has = [&](std::string_view word) { return base.find(word) != std::string::npos; };
    const bool of_2024 = has(kOf2024);
    const bool is_glove = has("glove") || (of_2024 && has("wiki_giga"));
    if (!is_glove || has("sample") || known_text(lines, dim)) return std::nullopt;
    const PublishedFile* nearest = nullptr;
    for (const PublishedFile& file : kPublished) {
        if ((file.name.find(kOf2024) != std::string_view::npos) != of_2024) continue;
        if (file.dim == dim && file.lines > lines && (!nearest || file.lines < nearest->lines))
            nearest = &file;
    }
    if (nearest == nullptr) return std::nullopt;
    return KnownText{name_of(*nearest), nearest->lines};
}

std::uint64_t fewest_bytes(const PublishedFile& file) {
    const bool known = file.lines != 0 && file.name.ends_with(".txt");
    return known ? file.lines * (2 * file.dim + 2) : 1;
}

}  // namespace gloved::source
