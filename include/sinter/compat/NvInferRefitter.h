/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRefitter.h - IRefitter. Included by NvInferRuntime.h. */
#ifndef NV_INFER_REFITTER_H
#define NV_INFER_REFITTER_H

#include "NvInferRuntime.h"

namespace nvinfer1 {

/* Other weights for an engine. Contexts of it take them at their next run. */
class IRefitter : public detail::reporter, public detail::threaded {
  public:
    IRefitter(ICudaEngine &engine, ILogger &logger) : reporter(&logger), engine_(engine) {}
    bool setNamedWeights(char const *name, Weights weights) noexcept
    {
        return attempt([&] {
            /* An engine knows weights by type and size: a list of elements serves. */
            sinter::tensor value(detail::from(weights.type), { weights.count });
            if (value.size_bytes()) std::memcpy(value.data(), weights.values, value.size_bytes());
            (void)find(name);
            weights_[name] = value;
        });
    }
    bool setNamedWeights(char const *name, Weights weights, TensorLocation) noexcept
    {
        return setNamedWeights(name, weights);
    }
    bool setWeights(char const *layer, WeightsRole role, Weights weights) noexcept
    {
        const std::string word = role_word(role);
        return setNamedWeights((word.empty() ? layer : std::string(layer) + "." + word).c_str(), weights);
    }
    /* Layer and role of each weight that can be replaced. A weight that has a name of its own has the role kANY. */
    int32_t getAll(int32_t room, char const **layers, WeightsRole *roles) noexcept
    {
        return list_roles(room, layers, roles, false);
    }
    int32_t getMissing(int32_t room, char const **layers, WeightsRole *roles) noexcept
    {
        return list_roles(room, layers, roles, true);
    }
    /* What setNamedWeights() gave for a weight; its values are null before. */
    Weights getNamedWeights(char const *name) const noexcept
    {
        Weights made;
        const auto set = weights_.find(name ? name : "");
        if (set == weights_.end()) return made;
        made.type = detail::from(set->second.dtype());
        made.values = set->second.data();
        made.count = set->second.count();
        return made;
    }
    Weights getNamedWeights(char const *name, TensorLocation) const noexcept { return getNamedWeights(name); }
    /* The type and the count that new weights need. */
    Weights getWeightsPrototype(char const *name) const noexcept
    {
        return guard(Weights(), [&] {
            const sinter::weight w = find(name);
            Weights made;
            made.type = detail::from(w.dtype);
            made.count = static_cast<int64_t>(w.size * 8 / sinter_dtype_bits(w.dtype));
            return made;
        });
    }
    int32_t getAllWeights(int32_t room, char const **names) noexcept { return list(room, names, false); }
    /* Names that a refit wants beside those that were given: of a stripped engine all, else what is in one weight of
     * the engine with one that was given. */
    int32_t getMissingWeights(int32_t room, char const **names) noexcept { return list(room, names, true); }
    bool refitCudaEngine() noexcept
    {
        return attempt([&] {
            sinter::buffer bytes = model_.empty() ? engine_.engine().refit(weights_) : engine_.engine().refit(model_);
            sinter::engine_options o;
            o.use(::getPluginRegistry()->environment());
            engine_.replace(sinter::engine::load(bytes, o));
            engine_.keep(bytes.data(), bytes.size());
        });
    }
    /* Weights of a model of the same graph, which nvonnxparser::IParserRefitter names. */
    void setModel(std::string path) { model_ = std::move(path); }
    bool unsetNamedWeights(char const *name) noexcept { return weights_.erase(name ? name : "") != 0; }
    TensorLocation getWeightsLocation(char const *) const noexcept { return TensorLocation::kHOST; }
    /* Weights are compared in any case. */
    void setWeightsValidation(bool) noexcept {}
    bool getWeightsValidation() const noexcept { return true; }
    /* Ranges are of the build: no tensor of an engine has one that could change. */
    int32_t getTensorsWithDynamicRange(int32_t, char const **) const noexcept { return 0; }
    bool setDynamicRange(char const *, float, float) noexcept
    {
        fail(SINTER_UNSUPPORTED, "an engine keeps the ranges of its build: ITensor::setDynamicRange, and a new build");
        return false;
    }
    float getDynamicRangeMin(char const *) const noexcept { return -1; }
    float getDynamicRangeMax(char const *) const noexcept { return -1; }
    bool refitCudaEngineAsync(cudaStream_t) noexcept { return refitCudaEngine(); }
    void destroy() noexcept { delete this; }

  private:
    sinter::weight find(char const *name) const
    {
        for (sinter::weight const &w : engine_.engine().weights())
            if (w.name == name) return w;
        throw sinter::error(SINTER_INVALID_ARG, std::string("the engine has no weights '") + name + "'");
    }
    int32_t list(int32_t room, char const **names, bool missing) noexcept
    {
        return guard(0, [&] {
            if (known_.empty()) known_ = engine_.engine().weights();
            std::vector<char const *> given;
            for (auto const &w : weights_) given.push_back(w.first.c_str());
            std::set<std::string> needed;
            if (missing && model_.empty())
                for (sinter::weight const &w : engine_.engine().missing_weights(given)) needed.insert(w.name);
            int32_t count = 0;
            for (sinter::weight const &w : known_) {
                if (missing ? !needed.count(w.name) : w.is_fixed) continue;
                if (count < room && names) names[count] = w.name.c_str();
                count++;
            }
            return count;
        });
    }
    static char const *role_word(WeightsRole role)
    {
        static char const *const words[] = { "kernel", "bias", "shift", "scale", "weights", "" };
        return words[static_cast<int>(role)];
    }
    int32_t list_roles(int32_t room, char const **layers, WeightsRole *roles, bool missing) noexcept
    {
        return guard(0, [&] {
            const int32_t count = list(0, nullptr, missing);
            std::vector<char const *> names(static_cast<size_t>(count));
            (void)list(count, names.data(), missing);
            for (int32_t i = 0; i < count && i < room; i++) {
                const std::string name = names[static_cast<size_t>(i)];
                WeightsRole role = WeightsRole::kANY;
                std::string layer = name;
                for (int r = 0; r < static_cast<int>(WeightsRole::kANY); r++) {
                    const std::string end = std::string(".") + role_word(static_cast<WeightsRole>(r));
                    if (name.size() <= end.size() || name.compare(name.size() - end.size(), end.size(), end)) continue;
                    role = static_cast<WeightsRole>(r);
                    layer = name.substr(0, name.size() - end.size());
                }
                layer_names_.push_back(layer);
                if (layers) layers[i] = layer_names_.back().c_str();
                if (roles) roles[i] = role;
            }
            return count;
        });
    }
    ICudaEngine &engine_;
    std::string model_;
    std::deque<std::string> layer_names_;
    std::map<std::string, sinter::tensor> weights_;
    std::vector<sinter::weight> known_;
};

} // namespace nvinfer1

#endif
