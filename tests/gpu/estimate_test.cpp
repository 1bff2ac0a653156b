// The estimates of the first pass in float32 against the canonical maxima of each group, within the
// bounds that float_bound.hpp proves, on vectors made to hurt.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/canonical.hpp"
#include "kernels/cuda/float_bound.hpp"
#include "kernels/cuda/launches.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/shard.hpp"
#include "tests/gpu/device.hpp"

namespace gloved::tests {
namespace {

using namespace kernels;
using namespace kernels::cuda;

template <class T>
DeviceBuffer<T> on_device(const std::vector<T>& values, const Stream& stream) {
    auto buffer = DeviceBuffer<T>::allocate(values.size());
    if (!buffer) throw std::runtime_error(buffer.error().message);
    if (!copy_async(buffer->data(), values.data(), values.size(), stream) ||
        !stream.synchronize()) {
        throw std::runtime_error("copy failed");
    }
    return *std::move(buffer);
}

/// Rows and queries whose roundings add up instead of cancelling.
std::vector<float> awkward_vector(std::size_t dim, std::mt19937_64& random) {
    std::normal_distribution<float> normal;
    std::vector<float> vector(dim);
    const auto kind = random() % 8;
    for (std::size_t i = 0; i < dim; ++i) {
        switch (kind) {
            case 0:  // all elements round the same way
                vector[i] = 1.0F;
                break;
            case 1:  // just below and above a sum of two powers of two
                vector[i] = (1.0F + 0x1p-11F) * (i % 2 == 0 ? 1.0F - 0x1p-20F : 1.0F + 0x1p-20F);
                break;
            case 2:  // one large element, the others small
                vector[i] = i == 0 ? 1.0F : 3e-7F * normal(random);
                break;
            case 3:  // large terms that cancel
                vector[i] = (i % 2 == 0 ? 1.0F : -1.0F) * (1.0F + 1e-3F * normal(random));
                break;
            case 4:  // terms that fall off by powers of two
                vector[i] = std::ldexp(1.0F + 0x1p-11F, -static_cast<int>(i % 24));
                break;
            case 5:
                vector[i] = i == random() % dim ? 1.0F : 0.0F;
                break;
            default:
                vector[i] = normal(random);
        }
    }
    if (std::all_of(vector.begin(), vector.end(), [](float value) { return value == 0; }))
        vector[0] = 1;
    // Any norm that the bounds cover.
    const float scale = std::ldexp(1.0F, static_cast<int>(random() % 81) - 40);
    for (float& value : vector) value *= scale;
    return vector;
}

void check_passes(std::size_t rows, std::size_t dim) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(dim));
    std::mt19937_64 random(rows * 1000 + dim);
    const auto device = read_device(0);
    ASSERT_TRUE(device) << device.error().message;
    const DeviceShape& shape = device->shape;
    auto made = Stream::create();
    ASSERT_TRUE(made);
    const Stream stream = *std::move(made);

    const auto stride =
        static_cast<std::uint32_t>((dim + kStrideFloats - 1) / kStrideFloats * kStrideFloats);
    const auto groups = static_cast<std::uint32_t>((rows + kGroupRows - 1) / kGroupRows);
    std::vector<float> packed;
    std::vector<double> norms;
    for (std::size_t row = 0; row < rows; ++row) {
        const auto vector =
            row % 37 == 36 ? std::vector<float>(dim, 0.0F) : awkward_vector(dim, random);
        packed.insert(packed.end(), vector.begin(), vector.end());
        norms.push_back(canonical_norm(vector.data(), dim));
    }
    const auto packed_device = on_device(packed, stream);
    const auto norms_device = on_device(norms, stream);
    auto vectors = DeviceBuffer<float>::allocate(rows * stride);
    auto inverse = DeviceBuffer<float>::allocate(groups * kGroupRows);
    ASSERT_TRUE(vectors && inverse);
    ASSERT_EQ(
        launch_pad_rows(packed_device.data(), static_cast<std::uint32_t>(rows),
                        static_cast<std::uint32_t>(dim), stride, vectors->data(), stream.get()),
        cudaSuccess);
    ASSERT_EQ(launch_invert_norms(norms_device.data(), static_cast<std::uint32_t>(rows), groups,
                                  kMinNorm, kMaxNorm, inverse->data(), stream.get()),
              cudaSuccess);
    const auto ranks = on_device(std::vector<std::uint32_t>(rows, 0), stream);

    DeviceModel model;
    model.vectors = vectors->data();
    model.norms = norms_device.data();
    model.inverse_norms = inverse->data();
    model.ranks = ranks.data();
    model.rows = static_cast<std::uint32_t>(rows);
    model.dim = static_cast<std::uint32_t>(dim);
    model.stride = stride;
    model.groups = groups;

    constexpr std::uint32_t count = 8;
    std::vector<std::vector<float>> asked;
    std::vector<DeviceQuery> queries(count);
    std::vector<float> unit(std::size_t{count} * stride);
    for (std::uint32_t q = 0; q < count; ++q) {
        asked.push_back(awkward_vector(dim, random));
        queries[q].norm = canonical_norm(asked[q].data(), dim);
        queries[q].rank_below = ~std::uint32_t{0};
        queries[q].last = model.rows;
        for (std::size_t i = 0; i < dim; ++i) {
            unit[std::size_t{q} * stride + i] =
                static_cast<float>(static_cast<double>(asked[q][i]) / queries[q].norm);
        }
    }
    const auto queries_device = on_device(queries, stream);
    const auto unit_device = on_device(unit, stream);
    // Poisoned before each launch: what is not written shows.
    const std::vector<float> poison(groups, std::numeric_limits<float>::quiet_NaN());
    auto maxima = on_device(poison, stream);
    Workspace work;
    work.maxima = maxima.data();
    auto warp_maxima = DeviceBuffer<float>::allocate(kMaxWarps);
    ASSERT_TRUE(warp_maxima);
    work.warp_maxima = warp_maxima->data();
    std::uint32_t warps = 0;

    std::vector<double> wanted(std::size_t{count} * groups,
                               -std::numeric_limits<double>::infinity());
    for (std::uint32_t q = 0; q < count; ++q) {
        for (std::size_t row = 0; row < rows; ++row) {
            if (norms[row] == 0) continue;
            double& best = wanted[std::size_t{q} * groups + row / kGroupRows];
            best = std::max(best, canonical_dot(asked[q].data(), packed.data() + row * dim, dim) /
                                      (queries[q].norm * norms[row]));
        }
    }
    const auto compare = [&](std::uint32_t q, double bound, const char* pass) {
        std::vector<float> got(groups);
        ASSERT_TRUE(
            copy_async(got.data(), static_cast<const float*>(maxima.data()), got.size(), stream));
        ASSERT_TRUE(stream.synchronize());
        double worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double want = wanted[std::size_t{q} * groups + i];
            if (std::isinf(want)) {
                ASSERT_EQ(static_cast<double>(got[i]), want) << pass << " group " << i;
                continue;
            }
            const double error = std::abs(static_cast<double>(got[i]) - want);
            ASSERT_TRUE(error <= bound) << pass << " query " << q << " group " << i << ": "
                                        << got[i] << " for " << want << ", bound " << bound;
            worst = std::max(worst, error / bound);
        }
        std::printf("%s %zu x %zu: worst error is %.3f of the bound %.3g\n", pass, rows, dim, worst,
                    bound);
    };
    const auto poison_maxima = [&] {
        ASSERT_TRUE(copy_async(maxima.data(), poison.data(), poison.size(), stream));
        ASSERT_TRUE(stream.synchronize());
    };

    DeviceQueries all{queries_device.data(),
                      nullptr,
                      unit_device.data(),
                      nullptr,
                      nullptr,
                      count,
                      false,
                      1,
                      1,
                      true,
                      {},
                      0,
                      {}};
    for (std::uint32_t q = 0; q < count; ++q) {
        DeviceQueries one = all;
        one.queries = queries_device.data() + q;
        one.unit = unit_device.data() + std::size_t{q} * stride;
        one.count = 1;
        one.host.queries = queries.data() + q;
        one.host.unit = unit.data() + std::size_t{q} * stride;
        poison_maxima();
        ASSERT_EQ(launch_scan(model, one, work, shape, warps, stream.get()), cudaSuccess);
        compare(q, device_error_bound(dim), "float32");
        DeviceShape older = shape;
        older.bulk_copies = false;
        poison_maxima();
        ASSERT_EQ(launch_scan(model, one, work, older, warps, stream.get()), cudaSuccess);
        compare(q, device_error_bound(dim), "float32 by loads");
    }
}

class SelectSource : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(SelectSource, StayWithinTheirBound) {
    if (no_device()) GTEST_SKIP() << kNoDevice;
    check_passes(GetParam().first, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SelectSource,
    testing::Values(std::pair{1, 1}, std::pair{33, 3}, std::pair{5000, 25}, std::pair{5000, 50},
                    std::pair{5000, 100}, std::pair{5000, 200}, std::pair{5000, 300},
                    std::pair{400000, 25}, std::pair{200000, 50}, std::pair{100000, 100},
                    std::pair{60000, 200}, std::pair{50000, 300}, std::pair{777, 301},
                    std::pair{999, 31}, std::pair{500, 768}, std::pair{200, 1024},
                    std::pair{100, 4096}),
    [](const auto& shape) {
        return std::to_string(shape.param.first) + "x" + std::to_string(shape.param.second);
    });

}  // namespace
}  // namespace gloved::tests
