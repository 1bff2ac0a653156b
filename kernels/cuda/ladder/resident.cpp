#include "kernels/cuda/ladder/resident.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/result.hpp"

namespace gloved::kernels::ladder {

std::vector<float> float_norms(const format::Model& model) {
    std::vector<float> norms(model.rows());
    std::transform(model.norms().begin(), model.norms().end(), norms.begin(),
                   [](double norm) { return static_cast<float>(norm); });
    return norms;
}

Result<std::shared_ptr<const ResidentModel>> make_resident_model(const format::Model& model,
                                                                 int device) {
    if (Status done = cuda::use_device(device); !done) return done.error();
    auto stream = cuda::Stream::create();
    if (!stream) return stream.error();
    auto vectors = cuda::DeviceBuffer<float>::allocate(model.vectors().size());
    if (!vectors) return vectors.error();
    auto norms = cuda::DeviceBuffer<float>::allocate(model.rows());
    if (!norms) return norms.error();

    const std::vector<float> host_norms = float_norms(model);
    if (Status done = cuda::copy_async<float>(vectors->data(), model.vectors().data(),
                                              vectors->size(), *stream);
        !done) {
        return done.error();
    }
    if (Status done =
            cuda::copy_async<float>(norms->data(), host_norms.data(), norms->size(), *stream);
        !done) {
        return done.error();
    }
    if (Status done = stream->synchronize(); !done) return done.error();

    auto resident = std::make_shared<ResidentModel>();
    resident->device = device;
    resident->rows = model.rows();
    resident->dim = model.dim();
    resident->vectors = *std::move(vectors);
    resident->norms = *std::move(norms);
    return std::shared_ptr<const ResidentModel>(std::move(resident));
}

}  // namespace gloved::kernels::ladder
