/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPluginAdapter.h - creators of plugins as sinter_plugins, and the registry. Included by NvInferRuntime.h.
 */
#ifndef NV_INFER_PLUGIN_ADAPTER_H
#define NV_INFER_PLUGIN_ADAPTER_H

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "NvInferPluginInstances.h"
#include "NvInferPluginShipped.h"

#include <deque>
#include <map>
#include <mutex>

namespace nvinfer1 {
namespace detail {

/* The field that has a serialised plugin. */
inline constexpr char SERIALIZED[] = "_serialized";
/* Defaults of fields that say: the node does not give it. */
inline constexpr int64_t ABSENT_INT = INT64_MIN;
inline constexpr double ABSENT_REAL = -1.7976931348623157e308;

/* Expressions of a call of `shapes`. */
class expressions : public IExprBuilder {
  public:
    explicit expressions(sinter_plugin_shapes *s) : s_(s) {}
    class one : public IDimensionExpr {
      public:
        one(sinter_plugin_shapes *s, uint32_t number, bool is_decided, bool is_late_size)
            : id(number), is_late(is_late_size), s_(s), is_decided_(is_decided)
        {}
        bool isSizeTensor() const override { return is_decided_; }
        bool isConstant() const override
        {
            int64_t value;
            return !is_decided_ && id != 0 && s_->known(s_->dims, id, &value) != 0;
        }
        int64_t getConstantValue() const override
        {
            int64_t value = 0;
            return !is_decided_ && id != 0 && s_->known(s_->dims, id, &value) != 0 ? value : INT32_MIN;
        }
        uint32_t id;
        bool is_late; /* a size tensor, or made of one */

      private:
        sinter_plugin_shapes *s_;
        bool is_decided_;
    };
    IDimensionExpr const *make(uint32_t id, bool is_decided = false, bool is_late = false)
    {
        made_.emplace_back(s_, id, is_decided, is_late);
        return &made_.back();
    }
    IDimensionExpr const *constant(int64_t value) override { return make(s_->constant(s_->dims, value)); }
    IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &a, IDimensionExpr const &b) override
    {
        static const int to[] = {
            SINTER_DIM_ADD,      SINTER_DIM_MUL,    SINTER_DIM_MAX, SINTER_DIM_MIN, SINTER_DIM_SUB, -1, -1,
            SINTER_DIM_FLOORDIV, SINTER_DIM_CEILDIV
        };
        const int index = static_cast<int>(op);
        const uint32_t x = static_cast<one const &>(a).id, y = static_cast<one const &>(b).id;
        if (index < 0 || index > 8) return nullptr;
        if (to[index] >= 0)
            return make(s_->apply(s_->dims, static_cast<sinter_dim_op>(to[index]), x, y), false,
                        static_cast<one const &>(a).is_late || static_cast<one const &>(b).is_late);
        /* kEQUAL and kLESS: of constants only. */
        if (!a.isConstant() || !b.isConstant()) return make(0);
        const int64_t p = a.getConstantValue(), q = b.getConstantValue();
        return constant(op == DimensionOperation::kEQUAL ? p == q : p < q);
    }
    IDimensionExpr const *declareSizeTensor(int32_t output, IDimensionExpr const &,
                                            IDimensionExpr const &upper) override
    {
        if (output < 0) return nullptr;
        const uint32_t most = static_cast<one const &>(upper).id;
        return make(s_->declare_size(s_->dims, static_cast<uint32_t>(output), most), true, true);
    }
    DimsExprs of(sinter_plugin_value const &v)
    {
        DimsExprs made;
        if (v.rank > static_cast<uint32_t>(Dims::MAX_DIMS))
            throw sinter::error(SINTER_UNSUPPORTED,
                                "an input of rank " + std::to_string(v.rank) + ": Dims have 8 axes");
        made.nbDims = static_cast<int32_t>(v.rank);
        for (uint32_t i = 0; i < v.rank; i++) made.d[i] = make(v.dim[i]);
        return made;
    }

  private:
    sinter_plugin_shapes *s_;
    std::deque<one> made_;
};

/* A creator as a sinter_plugin. */
class adapter {
  public:
    adapter(IPluginCreatorInterface *creator, std::string space)
        : creator_(creator), v2_(dynamic_cast<IPluginCreator *>(creator)),
          v3_(dynamic_cast<IPluginCreatorV3One *>(creator)), space_(std::move(space))
    {
        if (!v2_ && !v3_)
            throw sinter::error(SINTER_INVALID_ARG, "the creator is no IPluginCreator and no IPluginCreatorV3One");
        name_ = v2_ ? v2_->getPluginName() : v3_->getPluginName();
        version_ = v2_ ? v2_->getPluginVersion() : v3_->getPluginVersion();
        const PluginFieldCollection *fc = v2_ ? v2_->getFieldNames() : v3_->getFieldNames();
        for (int32_t i = 0; fc && i < fc->nbFields; i++) declare(fc->fields[i]);
        declared_.push_back({ SERIALIZED, SINTER_PLUGIN_BYTES, 0, "" });
        declared_.push_back({ SINTER_PLUGIN_NODE, SINTER_PLUGIN_TEXT, 0, "" });
    }
    IPluginCreatorInterface *creator() const { return creator_; }
    std::string const &name() const { return name_; }
    std::string const &version() const { return version_; }
    std::string const &space() const { return space_; }
    sinter_plugin describe()
    {
        sinter_plugin p = {};
        p.struct_size = sizeof p;
        p.name = name_.c_str();
        p.version = version_.c_str();
        p.space = space_.c_str();
        p.user = this;
        p.field = declared_.data();
        p.count_field = static_cast<uint32_t>(declared_.size());
        p.in_max = p.out_max = 32;
        p.out_min = 1;
        p.shapes = shapes;
        p.supports = supports;
        p.workspace = workspace;
        p.tactics = tactics;
        p.create = create;
        p.destroy = [](void *, void *state) { delete static_cast<plugin_instance *>(state); };
        p.run = run<copy_on_host>;
#ifndef SINTER_HOST_CUDA
        p.cuda_run = run<copy_on_device>;
#endif
        return p;
    }

  private:
    void declare(PluginField const &f)
    {
        const bool is_one = f.length == 1;
        types_.push_back(f.type);
        names_.emplace_back(f.name);
        sinter_plugin_field made = { names_.back().c_str(), SINTER_PLUGIN_BYTES, 0, nullptr };
        switch (f.type) {
        case PluginFieldType::kFLOAT32:
        case PluginFieldType::kFLOAT64: made.type = is_one ? SINTER_PLUGIN_REAL : SINTER_PLUGIN_REALS; break;
        case PluginFieldType::kINT8:
        case PluginFieldType::kINT16:
        case PluginFieldType::kINT32:
        case PluginFieldType::kINT64: made.type = is_one ? SINTER_PLUGIN_INT : SINTER_PLUGIN_INTS; break;
        case PluginFieldType::kCHAR: made.type = SINTER_PLUGIN_TEXT; break;
        default: break;
        }
        const bool is_number = made.type == SINTER_PLUGIN_INT || made.type == SINTER_PLUGIN_REAL;
        made.count = is_number ? 1 : 0;
        made.data = made.type == SINTER_PLUGIN_REAL ? static_cast<void const *>(&ABSENT_REAL) : &ABSENT_INT;
        declared_.push_back(made);
    }
    /* The fields that a node gives; the creator knows the defaults of the others. */
    void fields_of(sinter_plugin_field const *field, field_list &to) const
    {
        for (size_t i = 0; i < types_.size(); i++) {
            sinter_plugin_field const &f = field[i];
            const std::string name = names_[i];
            const bool is_absent =
                f.count == 0 || (f.type == SINTER_PLUGIN_INT && *static_cast<int64_t const *>(f.data) == ABSENT_INT) ||
                (f.type == SINTER_PLUGIN_REAL && *static_cast<double const *>(f.data) == ABSENT_REAL);
            if (is_absent) continue;
            switch (types_[i]) {
            case PluginFieldType::kFLOAT32: to.numbers<float>(name, types_[i], f); break;
            case PluginFieldType::kFLOAT64: to.numbers<double>(name, types_[i], f); break;
            case PluginFieldType::kINT8: to.numbers<int8_t>(name, types_[i], f); break;
            case PluginFieldType::kINT16: to.numbers<int16_t>(name, types_[i], f); break;
            case PluginFieldType::kINT32: to.numbers<int32_t>(name, types_[i], f); break;
            case PluginFieldType::kINT64: to.numbers<int64_t>(name, types_[i], f); break;
            default:
                to.add(name, types_[i], f.data, static_cast<size_t>(f.count), static_cast<int32_t>(f.count));
                break;
            }
        }
    }
    std::unique_ptr<plugin_instance> make(sinter_plugin_field const *field) const
    {
        /* A node has no serialised bytes; those of a plugin that was added by calls begin with a mark. */
        sinter_plugin_field const &bytes = field[types_.size()];
        auto const *const data = static_cast<char const *>(bytes.data) + 1;
        const size_t size = bytes.count ? static_cast<size_t>(bytes.count) - 1 : 0;
        const char *const node = static_cast<char const *>(field[types_.size() + 1].data);
        const char *const layer = *node ? node : name_.c_str();
        field_list list;
        if (bytes.count == 0) fields_of(field, list);
        else if (v3_) from_bytes(data, size, list);
        const PluginFieldCollection fc = list.get();
        const auto create_v3 = [&] { return v3_->createPlugin(layer, &fc, TensorRTPhase::kBUILD); };
        if (bytes.count == 0) {
            if (v3_) return std::make_unique<instance_v3>(create_v3());
            return instance_of(v2_->createPlugin(layer, &fc));
        }
        /* A program may delete its creator once the engine is built: the first plugin of each state is kept. */
        const std::string state(data, size);
        if (v3_) return std::make_unique<instance_v3>(clone_of(state, create_v3));
        return instance_of(clone_of(state, [&] { return v2_->deserializePlugin(layer, data, size); }));
    }
    /* A clone of what `create` made for this state. What is kept is not deleted: when the process ends, what its
     * destructor uses may be gone. */
    template <class F> auto clone_of(std::string const &state, F create) const -> decltype(create())
    {
        using plugin = decltype(create());
        static std::mutex lock;
        static auto *const kept = new std::map<std::pair<adapter const *, std::string>, plugin>();
        const std::lock_guard<std::mutex> held(lock);
        plugin &first = (*kept)[std::make_pair(this, state)];
        if (!first) first = create();
        return first ? first->clone() : nullptr;
    }
    static adapter const &of(void *user) { return *static_cast<adapter const *>(user); }

    /* f(), whose exceptions become a status and a text. */
    template <class F> static sinter_status guard(char *text, size_t size, F &&f) noexcept
    {
        const auto done = sinter::attempt(f);
        if (done) return SINTER_OK;
        if (text && size) {
            const size_t length = std::min(size - 1, done.message.size());
            std::memcpy(text, done.message.data(), length);
            text[length] = 0;
        }
        return done.status == SINTER_OK ? SINTER_INTERNAL : done.status;
    }
    /* Results lie as at the largest size, and plugins write theirs without gaps: the two are one where nothing but axes
     * of 1 is further out than a size that the run decides. */
    static void refuse_inner_late(DimsExprs const &shape, uint32_t output)
    {
        bool is_first = true;
        for (int32_t k = 0; k < shape.nbDims; k++) {
            auto const &size = static_cast<expressions::one const &>(*shape.d[k]);
            if (size.is_late && !is_first)
                throw sinter::error(SINTER_UNSUPPORTED,
                                    "output " + std::to_string(output) + " has a size on axis " + std::to_string(k) +
                                        " that the run decides; only its first axis may have one");
            is_first = is_first && size.isConstant() && size.getConstantValue() == 1;
        }
    }
    static sinter_status shapes(sinter_plugin_shapes *s)
    {
        return guard(s->error, s->error_size, [&] {
            const auto p = of(s->user).make(s->field);
            if (s->count_out > p->outputs())
                throw sinter::error(SINTER_INVALID_MODEL, std::to_string(s->count_out) + " outputs, the plugin has " +
                                                              std::to_string(p->outputs()));
            expressions e(s);
            std::vector<DimsExprs> in, out(s->count_out);
            std::vector<DataType> types, out_types(s->count_out, DataType::kFLOAT);
            for (uint32_t i = 0; i < s->count_in; i++) {
                in.push_back(e.of(s->in[i]));
                types.push_back(from(s->in[i].dtype));
            }
            p->shapes(in.data(), s->count_in, types.data(), out.data(), out_types.data(), s->count_out, e);
            for (uint32_t i = 0; i < s->count_out; i++) {
                s->out[i].dtype = from(out_types[i]);
                if (out[i].nbDims < 0 || out[i].nbDims > Dims::MAX_DIMS)
                    throw sinter::error(SINTER_UNSUPPORTED, "an output of " + std::to_string(out[i].nbDims) + " axes");
                s->out[i].rank = static_cast<uint32_t>(out[i].nbDims);
                for (int32_t k = 0; k < out[i].nbDims; k++) {
                    if (!out[i].d[k]) throw sinter::error(SINTER_UNSUPPORTED, "a size of an output is nullptr");
                    s->out[i].dim[k] = static_cast<expressions::one const *>(out[i].d[k])->id;
                }
                refuse_inner_late(out[i], i);
            }
        });
    }
    static std::vector<DynamicPluginTensorDesc> io_of(sinter_plugin_problem const *p)
    {
        std::vector<DynamicPluginTensorDesc> made;
        for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
            sinter_plugin_operand const &o = i < p->count_in ? p->in[i] : p->out[i - p->count_in];
            for (uint32_t k = 0; k < o.rank; k++)
                if (o.order[k] != k) throw sinter::error(SINTER_UNSUPPORTED, "plugins take row-major operands");
            DynamicPluginTensorDesc d;
            d.desc.type = from(o.dtype);
            d.min = to_dims(o.min, o.rank);
            d.opt = to_dims(o.opt, o.rank);
            d.max = to_dims(o.max, o.rank);
            d.desc.dims = d.opt;
            for (uint32_t k = 0; k < o.rank; k++)
                if (o.min[k] != o.max[k]) d.desc.dims.d[k] = -1;
            made.push_back(d);
        }
        return made;
    }
    static int supports(sinter_plugin_problem const *p)
    {
        bool is_supported = false;
        const sinter_status s =
            guard(nullptr, 0, [&] { is_supported = of(p->user).make(p->field)->supports(io_of(p), p->count_in); });
        return s == SINTER_OK && is_supported;
    }
    static size_t workspace(sinter_plugin_problem const *p)
    {
        size_t size = 0;
        const sinter_status s =
            guard(nullptr, 0, [&] { size = of(p->user).make(p->field)->workspace(io_of(p), p->count_in); });
        return s == SINTER_OK ? size : SIZE_MAX;
    }
    static uint32_t tactics(sinter_plugin_problem const *p, uint32_t *list, uint32_t room)
    {
        std::vector<uint32_t> found;
        (void)guard(nullptr, 0, [&] { found = of(p->user).make(p->field)->tactics(); });
        if (found.empty()) found.push_back(0);
        if (found.size() > room) found.resize(room);
        std::copy(found.begin(), found.end(), list);
        return static_cast<uint32_t>(found.size());
    }
    static sinter_status create(sinter_plugin_problem const *p, void **state)
    {
        return guard(p->error, p->error_size, [&] {
            auto made = of(p->user).make(p->field);
            made->prepare(io_of(p), p->count_in);
            *state = made.release();
        });
    }
    static size_t size_of(sinter_plugin_tensor const &t)
    {
        uint64_t bits = sinter_dtype_bits(t.dtype);
        for (uint32_t k = 0; k < t.rank; k++) bits *= static_cast<uint64_t>(t.dim[k]);
        return static_cast<size_t>((bits + 7) / 8);
    }
    static void copy_on_host(void *to, void const *from, size_t size, cudaStream_t) { std::memcpy(to, from, size); }
    static void copy_on_device(void *to, void const *from, size_t size, cudaStream_t stream)
    {
        const cudaError_t code = cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
        if (code != cudaSuccess) throw sinter::error(SINTER_DEVICE, cudaGetErrorString(code));
    }
    template <void (*COPY)(void *, void const *, size_t, cudaStream_t)>
    static sinter_status run(sinter_plugin_run const *r)
    {
        return guard(r->error, r->error_size, [&] {
            PluginTensorDesc desc[64];
            void const *in[32];
            void *out[32];
            lent memory;
            memory.add(r->workspace, r->workspace_size);
            for (uint32_t i = 0; i < r->count_in + r->count_out; i++) {
                sinter_plugin_tensor const &t = i < r->count_in ? r->in[i] : r->out[i - r->count_in];
                memory.add(t.data, size_of(t));
                desc[i].dims = to_dims(t.dim, t.rank);
                desc[i].type = from(t.dtype);
                if (i < r->count_in) in[i] = t.data;
                else out[i - r->count_in] = t.data;
            }
            auto *const instance = static_cast<plugin_instance *>(r->state);
            for (uint32_t i = 0; i < r->count_out; i++) {
                const int32_t shared = instance->aliased_input(i);
                if (shared < 0) continue;
                /* The input keeps its values for other readers: the plugin changes a copy in the output's memory. */
                if (shared >= static_cast<int32_t>(r->count_in))
                    throw sinter::error(SINTER_INVALID_ARG, "getAliasedInput() returned " + std::to_string(shared));
                COPY(out[i], in[shared], size_of(r->in[shared]), static_cast<cudaStream_t>(r->stream));
                in[shared] = out[i];
            }
            const int code = instance->enqueue(desc, desc + r->count_in, in, out, r->workspace, r->tactic,
                                               static_cast<cudaStream_t>(r->stream));
            if (code != 0) throw sinter::error(SINTER_DEVICE, "enqueue() returned " + std::to_string(code));
        });
    }

    IPluginCreatorInterface *creator_;
    IPluginCreator *v2_;
    IPluginCreatorV3One *v3_;
    std::string name_, version_, space_;
    std::deque<std::string> names_;
    std::vector<PluginFieldType> types_;
    std::vector<sinter_plugin_field> declared_;
};

} // namespace detail

/* All creators of the process: those that were registered, and those of the plugins that upstream ships. Creators are
 * registered before networks are made and engines are loaded that use them. */
class IPluginRegistry {
  public:
    using PluginLibraryHandle = void *;
    IPluginRegistry() { detail::ship(shipped_, ""); }
    /* Gives the shipped creators in another namespace, too: initLibNvInferPlugins. */
    void ship(std::string const &space)
    {
        const bool is_there = std::any_of(shipped_.begin(), shipped_.end(),
                                          [&](detail::shipped_creator const &s) { return s.space == space; });
        if (!is_there) detail::ship(shipped_, space);
    }
    bool registerCreator(IPluginCreatorInterface &creator, AsciiChar const *space) noexcept
    {
        const auto done = sinter::attempt([&] {
            auto made = std::make_unique<detail::adapter>(&creator, space ? space : "");
            if (find(made->name().c_str(), made->version().c_str(), made->space().c_str()))
                throw sinter::error(SINTER_INVALID_ARG, "plugin '" + made->name() + "' is registered already");
            if (auto *v2 = dynamic_cast<IPluginCreator *>(&creator)) v2->setPluginNamespace(space ? space : "");
            adapters_.push_back(std::move(made));
            env_.reset();
        });
        if (!done && getLogger()) getLogger()->log(ILogger::Severity::kERROR, done.message.c_str());
        return static_cast<bool>(done);
    }
    bool deregisterCreator(IPluginCreatorInterface const &creator) noexcept
    {
        for (auto it = adapters_.begin(); it != adapters_.end(); ++it) {
            if ((*it)->creator() != &creator) continue;
            retired_.push_back(std::move(*it)); /* engines may still use it */
            adapters_.erase(it);
            env_.reset();
            return true;
        }
        return false;
    }
    IPluginCreatorInterface *getCreator(AsciiChar const *name, AsciiChar const *version,
                                        AsciiChar const *space = "") noexcept
    {
        detail::adapter const *found = find(name, version, space);
        if (found) return found->creator();
        for (detail::shipped_creator const &s : shipped_)
            if (s.name == name && s.version == version && s.space == (space ? space : "")) return s.creator.get();
        return nullptr;
    }
    IPluginCreator *getPluginCreator(AsciiChar const *name, AsciiChar const *version,
                                     AsciiChar const *space = "") noexcept
    {
        return dynamic_cast<IPluginCreator *>(getCreator(name, version, space));
    }
    IPluginCreatorInterface *const *getAllCreators(int32_t *count) const noexcept
    {
        listed_.clear();
        for (auto const &a : adapters_) listed_.push_back(a->creator());
        for (detail::shipped_creator const &s : shipped_)
            if (!find(s.name.c_str(), s.version.c_str(), s.space.c_str())) listed_.push_back(s.creator.get());
        *count = static_cast<int32_t>(listed_.size());
        return listed_.data();
    }
    IPluginCreator *const *getPluginCreatorList(int32_t *count) const noexcept
    {
        listed_v2_.clear();
        int32_t all = 0;
        IPluginCreatorInterface *const *const list = getAllCreators(&all);
        for (int32_t i = 0; i < all; i++)
            if (auto *v2 = dynamic_cast<IPluginCreator *>(list[i])) listed_v2_.push_back(v2);
        *count = static_cast<int32_t>(listed_v2_.size());
        return listed_v2_.data();
    }
    IPluginCreatorInterface *const *getAllCreatorsRecursive(int32_t *count) noexcept { return getAllCreators(count); }
    /* The resource of a key that plugins share: a clone of the one that came first, until all have released it. */
    IPluginResource *acquirePluginResource(AsciiChar const *key, IPluginResource *resource) noexcept
    {
        if (!key || !resource) return nullptr;
        auto &shared = resources_[key];
        if (!shared.first) shared.first = resource->clone();
        if (shared.first) shared.second++;
        return shared.first;
    }
    int32_t releasePluginResource(AsciiChar const *key) noexcept
    {
        const auto found = resources_.find(key ? key : "");
        if (found == resources_.end() || found->second.second == 0) return -1;
        if (--found->second.second > 0) return 0;
        IPluginResource *const last = found->second.first;
        resources_.erase(found);
        const int32_t code = last->release();
        delete last;
        return code;
    }
    /* Engines may still use the library: it stays loaded, and no longer serves new networks. */
    void deregisterLibrary(PluginLibraryHandle handle) noexcept
    {
        for (auto it = libraries_.begin(); it != libraries_.end(); ++it) {
            if (&*it != handle) continue;
            it->clear();
            env_.reset();
            return;
        }
    }
    /* A shared library with plugins of sinter (docs/plugins.md). */
    PluginLibraryHandle loadLibrary(AsciiChar const *path) noexcept
    {
        libraries_.emplace_back(path);
        env_.reset();
        return sinter::attempt([&] { environment(); }) ? &libraries_.back() : (libraries_.pop_back(), nullptr);
    }
    void setErrorRecorder(IErrorRecorder *recorder) noexcept { recorder_ = recorder; }
    IErrorRecorder *getErrorRecorder() const noexcept { return recorder_; }
    bool isParentSearchEnabled() const noexcept { return true; }
    void setParentSearchEnabled(bool) noexcept {}

    /* Gives all creators to the process that loads this library: `--plugin`, sinter_plugins_load. */
    sinter_status give(sinter_plugin_host const *host) noexcept
    {
        for (auto const &a : adapters_) {
            sinter_plugin const p = a->describe();
            sinter_status const s = host->add(host->plugins, &p, host->error);
            if (s != SINTER_OK) return s;
        }
        return SINTER_OK;
    }
    /* Adds what was registered since to the plugins of a network that was made before. libraries: how many libraries it
     * has seen. */
    void bring(sinter::plugins &to, size_t &libraries) const
    {
        const auto has = [&](sinter_plugin const &p) {
            for (uint32_t i = 0; i < to.count(); i++) {
                sinter_plugin const &q = *to.at(i);
                if (!std::strcmp(p.name, q.name) && !std::strcmp(p.version, q.version) &&
                    !std::strcmp(p.space, q.space))
                    return true;
            }
            return false;
        };
        for (auto const &a : adapters_) {
            sinter_plugin const p = a->describe();
            if (!has(p)) to.add(p);
        }
        for (; libraries < libraries_.size(); libraries++)
            if (!libraries_[libraries].empty()) to.load(libraries_[libraries]);
    }
    /* What builds and engines are made with. */
    sinter::environment environment()
    {
        if (!env_) {
            sinter::plugins made;
            for (auto const &a : adapters_) made.add(a->describe());
            for (std::string const &path : libraries_)
                if (!path.empty()) made.load(path);
            env_.emplace();
            env_->use(made);
            plugins_ = made.share();
        }
        return *env_;
    }
    std::shared_ptr<sinter_plugins> plugins()
    {
        environment();
        return plugins_;
    }

  private:
    detail::adapter const *find(AsciiChar const *name, AsciiChar const *version, AsciiChar const *space) const
    {
        for (auto const &a : adapters_)
            if (a->name() == name && a->version() == version && a->space() == (space ? space : "")) return a.get();
        return nullptr;
    }
    std::vector<std::unique_ptr<detail::adapter>> adapters_, retired_;
    std::vector<detail::shipped_creator> shipped_;
    std::deque<std::string> libraries_;
    sinter::standard::optional<sinter::environment> env_;
    std::shared_ptr<sinter_plugins> plugins_;
    mutable std::vector<IPluginCreatorInterface *> listed_;
    mutable std::vector<IPluginCreator *> listed_v2_;
    std::map<std::string, std::pair<IPluginResource *, int32_t>> resources_;
    IErrorRecorder *recorder_ = nullptr;
};

} // namespace nvinfer1

inline nvinfer1::IPluginRegistry *getPluginRegistry() noexcept
{
    static nvinfer1::IPluginRegistry registry;
    return &registry;
}

namespace nvinfer1 {
/* Registers a creator when the program, or the shared library that has it, begins. */
template <class T> class PluginRegistrar {
  public:
    PluginRegistrar() { getPluginRegistry()->registerCreator(instance_, ""); }

  private:
    T instance_{};
};
} // namespace nvinfer1

#if defined(__GNUC__)
/* A shared library whose sources include this header is a library of plugins for sinter, too. */
extern "C" __attribute__((weak, used, visibility("default"))) sinter_status sinter_plugin_entry(
    sinter_plugin_host const *host)
{
    return getPluginRegistry()->give(host);
}
#endif

#define REGISTER_TENSORRT_PLUGIN(name)                                                                                 \
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}

#endif
