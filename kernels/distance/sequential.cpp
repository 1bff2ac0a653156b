#include "kernels/distance/sequential.hpp"

#include <cstddef>
#include <string>

#include "kernels/distance/canonical.hpp"
#include "kernels/distance/host_buffer.hpp"

namespace gloved::kernels::distance {
namespace {

#ifdef __x86_64__
/// canonical_sum for processors with fused operations; without, std::fma is a library call per
/// component. Repeated here because an inline function of a header must not be compiled for them
/// (see kernels/simd.hpp).
__attribute__((target("fma"))) float sum_with_fma(const float* x, const float* y, std::size_t dim) {
    float sum = 0;
    for (std::size_t block = 0; block < dim; block += kBlock) {
        const std::size_t end = dim - block < kBlock ? dim : block + kBlock;
        float acc = 0;
        for (std::size_t k = block; k < end; ++k) {
            const float d = x[k] - y[k];
            acc = __builtin_fmaf(d, d, acc);
        }
        sum = block == 0 ? acc : sum + acc;
    }
    return sum;
}

/// canonical_sum, as fast as this processor can.
auto* best_sum() { return __builtin_cpu_supports("fma") ? sum_with_fma : canonical_sum; }
#else
auto* best_sum() { return canonical_sum; }
#endif

class Sequential final : public Engine {
  public:
    Sequential(PointsView points, Metric metric)
        : points_(points), metric_(metric), sum_(best_sum()) {}

    Status run(const Rectangle& rectangle, float* out, std::size_t stride, float* mirror,
               std::size_t mirror_stride) override {
        for (std::size_t i = 0; i < rectangle.rows; ++i) {
            const float* const x = points_.row(rectangle.first_row + i);
            for (std::size_t j = 0; j < rectangle.columns; ++j) {
                const float sum = sum_(x, points_.row(rectangle.first_column + j), points_.dim);
                const float distance = distance_from_sum(metric_, sum);
                out[i * stride + j] = distance;
                if (mirror != nullptr) mirror[j * mirror_stride + i] = distance;
            }
        }
        return {};
    }
    Result<double> time_resident() override { return buffer_.time_all(*this, points_.rows); }
    std::string description() const override { return "sequential: 1 thread"; }

  private:
    PointsView points_;
    Metric metric_;
    float (*sum_)(const float*, const float*, std::size_t);
    HostBuffer buffer_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_sequential(PointsView points, Metric metric,
                                                const DistanceOptions&) {
    return std::unique_ptr<Engine>(std::make_unique<Sequential>(points, metric));
}

}  // namespace gloved::kernels::distance
