// Any bytes as a model's files. Whatever opens can be read to its last byte, and its lookups agree
// with its keys.
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/format/frame.hpp"
#include "common/format/layout.hpp"
#include "common/format/model.hpp"
#include "common/format/planes.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/model_input.hpp"

using namespace gloved;

namespace {

using format::get;
using format::HeaderBytes;
using format::put;

/// Values and planes larger than this are cut to it: their headers promise more than there is.
constexpr std::uint64_t kMaxFileBytes = 1 << 16;

/// The generation of bytes that need not be a header.
std::uint64_t generation_of(const HeaderBytes& bytes) {
    format::Header header;
    header.rows = get<std::uint64_t>(bytes, fuzz::kAtRows);
    header.dim = get<std::uint32_t>(bytes, fuzz::kAtDim);
    header.keys_bytes = get<std::uint64_t>(bytes, fuzz::kAtKeysBytes);
    header.keys_checksum = get<std::uint64_t>(bytes, fuzz::kAtKeysChecksum);
    const std::size_t count = std::min<std::size_t>(
        get<std::uint32_t>(bytes, fuzz::kAtSectionCount), format::kMaxSections);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t entry = fuzz::kFixedBytes + i * fuzz::kEntryBytes;
        const auto* name = reinterpret_cast<const char*>(bytes.data() + entry);
        format::Section section;
        section.name.assign(name, ::strnlen(name, format::kMaxSectionName));
        section.checksum = get<std::uint64_t>(bytes, entry + fuzz::kAtEntryChecksum);
        header.sections.push_back(std::move(section));
    }
    return format::compute_generation(header);
}

void repair_checksum(HeaderBytes& bytes) {
    put(bytes, fuzz::kAtHeaderChecksum,
        format::checksum(std::span(bytes).first(fuzz::kAtHeaderChecksum)));
}

void repair(HeaderBytes& bytes, std::uint8_t what, std::string_view keys) {
    if ((what & fuzz::kRepairKeys) != 0) {
        put<std::uint64_t>(bytes, fuzz::kAtKeysBytes, keys.size());
        put(bytes, fuzz::kAtKeysChecksum, format::checksum(std::as_bytes(std::span(keys))));
    }
    if ((what & fuzz::kRepairGeneration) != 0)
        put(bytes, fuzz::kAtGeneration, generation_of(bytes));
    if ((what & fuzz::kRepairChecksum) != 0) repair_checksum(bytes);
}

/// A model's directory in memory, made once; its files are written over for each input.
class Files {
  public:
    Files() {
        path_ = (::access("/dev/shm", W_OK) == 0    ? "/dev/shm"
                 : std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR")
                                                    : "/tmp");
        path_ += "/gloved-fuzz-XXXXXX";
        GLOVED_CHECK(::mkdtemp(path_.data()) != nullptr);
        values_ = create(format::kValuesFile);
        keys_ = create(format::kKeysFile);
        planes_ = create(format::kPlanesFile);
    }
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;
    ~Files() {
        ::unlink((path_ + "/" + format::kValuesFile).c_str());
        ::unlink((path_ + "/" + format::kKeysFile).c_str());
        ::unlink((path_ + "/" + format::kPlanesFile).c_str());
        ::unlink(aside().c_str());
        ::rmdir(path_.c_str());
    }

    const std::string& path() const { return path_; }

    void write(const HeaderBytes& header, std::uint64_t values_bytes, std::string_view keys) {
        write_headed(values_.get(), header, values_bytes);
        GLOVED_CHECK(write_all_at(keys_.get(), std::as_bytes(std::span(keys)), 0, path_));
        GLOVED_CHECK(::ftruncate(keys_.get(), static_cast<off_t>(keys.size())) == 0);
    }
    void write_planes(const HeaderBytes& header, std::uint64_t bytes) {
        write_headed(planes_.get(), header, bytes);
    }
    /// Whether the model has its planes file, or that lies aside.
    void show_planes(bool shown) {
        if (shown == planes_shown_) return;
        const std::string there = path_ + "/" + format::kPlanesFile;
        GLOVED_CHECK(
            ::rename((shown ? aside() : there).c_str(), (shown ? there : aside()).c_str()) == 0);
        planes_shown_ = shown;
    }

  private:
    UniqueFd create(const char* name) {
        UniqueFd fd(
            ::open((path_ + "/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        GLOVED_CHECK(fd);
        return fd;
    }

    void write_headed(int fd, const HeaderBytes& header, std::uint64_t bytes) {
        const auto head = std::span(header).first(std::min<std::uint64_t>(header.size(), bytes));
        GLOVED_CHECK(write_all_at(fd, head, 0, path_));
        GLOVED_CHECK(::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    }
    std::string aside() const { return path_ + "/aside"; }

    std::string path_;
    UniqueFd values_;
    UniqueFd keys_;
    UniqueFd planes_;
    bool planes_shown_ = true;
};

/// Reads each byte and asks each question that a daemon would.
void use(const format::Model& model) {
    GLOVED_CHECK(model.vectors().size() == model.rows() * model.dim());
    GLOVED_CHECK(model.norms().size() == model.rows());
    GLOVED_CHECK(model.ranks().size() == model.rows());
    double sum = 0;
    for (const float value : model.vectors()) sum += static_cast<double>(value);
    for (const double norm : model.norms()) sum += norm;
    for (const std::uint32_t rank : model.ranks()) sum += rank;
    if (const auto planes = model.planes()) {
        GLOVED_CHECK((planes->size() == format::PlaneShape{model.rows(), model.dim()}.bytes()));
        for (const std::byte byte : *planes) sum += static_cast<double>(byte);
        static_cast<void>(bool(model.verify_planes()));
    }
    volatile double sink = sum;  // so that the reads are made
    static_cast<void>(sink);
    for (const format::Section& section : model.header().sections)
        static_cast<void>(bool(model.verify_section(section)));

    for (std::size_t row = 0; row < model.rows(); ++row) {
        const std::string_view key = model.key(row);
        GLOVED_CHECK(!key.empty() && key.find('\n') == std::string_view::npos);
        GLOVED_CHECK(model.find(key) == static_cast<format::Row>(row));
        const auto range = model.prefix_range(key);
        GLOVED_CHECK(range.first == row && range.last > row && range.last <= model.rows());
        GLOVED_CHECK(model.key(range.last - 1).starts_with(key));
        GLOVED_CHECK(range.last == model.rows() || !model.key(range.last).starts_with(key));
    }
    GLOVED_CHECK(model.prefix_range("").size() == model.rows());
    GLOVED_CHECK(!model.find(""));
    GLOVED_CHECK(!model.find(std::string(model.key(model.rows() - 1)) + "\n"));
}

}  // namespace

/// Refuses to start when this file's idea of the header is not the format's: then every repair
/// would be damage.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
    HeaderBytes bytes = format::encode_header(fuzz::seed_header(2, 3));
    GLOVED_CHECK(format::decode_header(bytes));
    put<std::uint64_t>(bytes, fuzz::kAtGeneration, 0);
    put<std::uint64_t>(bytes, fuzz::kFixedBytes + fuzz::kAtEntryChecksum, 1);
    GLOVED_CHECK(!format::decode_header(bytes));
    repair(bytes, fuzz::kRepairAll, "a\nb\n");
    const auto header = format::decode_header(bytes);
    GLOVED_CHECK(header && header->keys_bytes == 4 &&
                 header->file_bytes == get<std::uint64_t>(bytes, fuzz::kAtFileBytes));
    const format::PlanesHeader planes{2, 3, 4, 5};
    HeaderBytes of_planes = format::encode_planes_header(planes);
    GLOVED_CHECK(get<std::uint64_t>(of_planes, fuzz::kAtGeneration) == planes.generation &&
                 get<std::uint64_t>(of_planes, fuzz::kAtFileBytes) == planes.file_bytes());
    put<std::uint64_t>(of_planes, fuzz::kAtGeneration, 6);
    GLOVED_CHECK(!format::decode_planes_header(of_planes));
    repair_checksum(of_planes);
    GLOVED_CHECK(format::decode_planes_header(of_planes));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Files files;
    if (size < 2) return 0;
    const std::uint8_t what = data[0];
    const std::size_t entries = data[1] % (format::kMaxSections + 2);
    const std::span<const std::uint8_t> rest(data + 2, size - 2);
    const auto head =
        rest.first(std::min(rest.size(), fuzz::kFixedBytes + entries * fuzz::kEntryBytes));
    const bool with_planes = (what & fuzz::kWithPlanes) != 0;
    const auto behind = rest.subspan(head.size());
    const auto planes_head =
        behind.first(with_planes ? std::min(behind.size(), fuzz::kPlanesBytes) : 0);
    const auto last = behind.subspan(planes_head.size());
    const std::string_view keys(reinterpret_cast<const char*>(last.data()), last.size());

    HeaderBytes header{};
    std::memcpy(header.data(), head.data(), head.size());
    repair(header, what, keys);
    const auto decoded = format::decode_header(header);
    if (decoded) GLOVED_CHECK(format::decode_header(format::encode_header(*decoded)));

    const auto size_of = [](const HeaderBytes& bytes, bool one_less) {
        const std::uint64_t said =
            std::min(get<std::uint64_t>(bytes, fuzz::kAtFileBytes), kMaxFileBytes);
        return said - (one_less && said > 0 ? 1 : 0);
    };
    const std::uint64_t values_bytes = size_of(header, (what & fuzz::kOneByteLess) != 0);
    files.write(header, values_bytes, keys);
    files.show_planes(with_planes);
    HeaderBytes planes{};
    std::uint64_t planes_bytes = 0;
    if (with_planes) {
        std::memcpy(planes.data(), planes_head.data(), planes_head.size());
        if ((what & fuzz::kRepairPlanes) != 0) {
            put(planes, fuzz::kAtGeneration, get<std::uint64_t>(header, fuzz::kAtGeneration));
            repair_checksum(planes);
        }
        planes_bytes = size_of(planes, (what & fuzz::kPlanesOneByteLess) != 0);
        files.write_planes(planes, planes_bytes);
    }
    const auto model = format::Model::open(files.path());
    if (model) {
        GLOVED_CHECK(decoded && decoded->file_bytes == values_bytes);
        GLOVED_CHECK(model->planes().has_value() == with_planes);
        if (with_planes) {
            const auto of_planes = format::decode_planes_header(planes);
            GLOVED_CHECK(of_planes && of_planes->file_bytes() == planes_bytes &&
                         of_planes->generation == model->generation());
            GLOVED_CHECK(format::encode_planes_header(*of_planes) == planes);
        }
        use(*model);
    }
    // Without the planes it opens all the same, if these are all that is wrong.
    if (!model && with_planes && format::Model::open(files.path(), format::WithPlanes::no)) {
        files.show_planes(false);
        GLOVED_CHECK(format::Model::open(files.path()));
    }
    return 0;
}
