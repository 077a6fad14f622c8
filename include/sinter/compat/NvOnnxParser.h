/* SPDX-License-Identifier: Apache-2.0 */
/* NvOnnxParser.h - the parser of ONNX models, in the shape of TensorRT's header of this name. */
#ifndef NV_ONNX_PARSER_H
#define NV_ONNX_PARSER_H

#include "NvInfer.h"

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 1
#define NV_ONNX_PARSER_PATCH 0
#define NV_ONNX_PARSER_VERSION ((NV_ONNX_PARSER_MAJOR * 10000) + (NV_ONNX_PARSER_MINOR * 100) + NV_ONNX_PARSER_PATCH)

namespace nvonnxparser {

enum class ErrorCode : int {
    kSUCCESS = 0, kINTERNAL_ERROR = 1, kMEM_ALLOC_FAILED = 2, kMODEL_DESERIALIZE_FAILED = 3, kINVALID_VALUE = 4,
    kINVALID_GRAPH = 5, kINVALID_NODE = 6, kUNSUPPORTED_GRAPH = 7, kUNSUPPORTED_NODE = 8,
    kUNSUPPORTED_NODE_ATTR = 9, kUNSUPPORTED_NODE_INPUT = 10, kUNSUPPORTED_NODE_DATATYPE = 11,
    kUNSUPPORTED_NODE_DYNAMIC = 12, kUNSUPPORTED_NODE_SHAPE = 13, kREFIT_FAILED = 14
};
enum class OnnxParserFlag : int32_t {
    kNATIVE_INSTANCENORM = 0, kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1, kREPORT_CAPABILITY_DLA = 2,
    kENABLE_PLUGIN_OVERRIDE = 3, kADJUST_FOR_DLA = 4
};
using OnnxParserFlags = uint32_t;

/* Nodes, and whether the library takes them. */
using SubGraph_t = std::pair<std::vector<size_t>, bool>;
using SubGraphCollection_t = std::vector<SubGraph_t>;

class IParserError {
  public:
    virtual ~IParserError() = default;
    virtual ErrorCode code() const = 0;
    virtual char const *desc() const = 0;
    virtual char const *file() const = 0;
    virtual int line() const = 0;
    virtual char const *func() const = 0;
    virtual int node() const = 0; /* -1: it is no node */
    virtual char const *nodeName() const = 0;
    virtual char const *nodeOperator() const = 0;
    /* Functions of a model are expanded: there is no stack. */
    virtual char const *const *localFunctionStack() const { return nullptr; }
    virtual int32_t localFunctionStackSize() const { return 0; }
};

namespace detail {
/* Of a model, values come from its own bytes and from the files that it names. */
template <class Reporter> bool refuse(Reporter &r, char const *name) noexcept
{
    r.fail(SINTER_UNSUPPORTED, std::string("initializer '") + (name ? name : "") +
                                   "' cannot be given apart from the model, but in it or as external data");
    return false;
}
} // namespace detail

/* Adds models to a network. The network may outlive it. */
class IParser : public nvinfer1::detail::reporter {
  public:
    IParser(nvinfer1::INetworkDefinition &network, nvinfer1::ILogger &logger) : reporter(&logger), network_(network)
    {
        sinter_parser *made = nullptr;
        sinter::call(sinter_parser_create, network.net().get(), &made);
        c_ = std::shared_ptr<sinter_parser>(made, sinter_parser_destroy);
    }
    /* External data is read from the folder of the file. */
    bool parseFromFile(char const *path, int) noexcept
    {
        return done([&](sinter_error *e) { return sinter_parser_parse_file(c_.get(), path, e); });
    }
    bool parse(void const *model, size_t size, char const *path = nullptr) noexcept
    {
        const bool is_file = path && is_same(path, model, size); /* external data lie beside it */
        return done([&](sinter_error *e) {
            return is_file ? sinter_parser_parse_file(c_.get(), path, e)
                           : sinter_parser_parse_memory(c_.get(), model, size, e);
        });
    }
    bool parseWithWeightDescriptors(void const *model, size_t size) noexcept { return parse(model, size); }
    /* parse() in two steps. The caller keeps the model and the path until the second one. */
    bool loadModelProto(void const *model, size_t size, char const *path = nullptr) noexcept
    {
        model_ = model;
        size_ = size;
        path_ = path;
        return model != nullptr;
    }
    bool loadInitializer(char const *name, void const *, size_t) noexcept { return detail::refuse(*this, name); }
    bool parseModelProto() noexcept { return model_ && parse(model_, size_, path_); }
    int getNbErrors() const noexcept { return static_cast<int>(errors_.size()); }
    IParserError const *getError(int i) const noexcept
    {
        return i >= 0 && i < getNbErrors() ? &errors_[static_cast<size_t>(i)] : nullptr;
    }
    void clearErrors() noexcept
    {
        sinter_parser_clear_errors(c_.get());
        errors_.clear();
    }
    void setFlags(OnnxParserFlags flags) noexcept { flags_ = flags; }
    OnnxParserFlags getFlags() const noexcept { return flags_; }
    void setFlag(OnnxParserFlag f) noexcept { flags_ |= 1u << static_cast<int>(f); }
    void clearFlag(OnnxParserFlag f) noexcept { flags_ &= ~(1u << static_cast<int>(f)); }
    bool getFlag(OnnxParserFlag f) const noexcept { return flags_ >> static_cast<int>(f) & 1; }
    bool supportsOperator(char const *name) const noexcept
    {
        return guard(false, [&] {
            std::string text;
            sinter::check(sinter_print_operators(2, collect, &text), "operators"); /* 2: JSON */
            return text.find(std::string("\"name\": \"") + (name ? name : "") + "\", \"since\"") != std::string::npos;
        });
    }
    bool setBuilderConfig(nvinfer1::IBuilderConfig const *) noexcept { return true; }
    char const *const *getUsedVCPluginLibraries(int64_t &count) const noexcept
    {
        count = 0;
        return nullptr;
    }
    /* Parses the model into a network of its own, so that this object's network stays as it is. The sub-graphs are
     * those of this model from then on. */
    bool supportsModelV2(void const *model, size_t size, char const *path = nullptr) noexcept
    {
        return guard(false, [&] {
            asked_.reset();
            probe_.emplace(::getPluginRegistry()->environment());
            sinter_parser *made = nullptr;
            sinter::call(sinter_parser_create, probe_->get(), &made);
            asked_ = std::shared_ptr<sinter_parser>(made, sinter_parser_destroy);
            sinter_error e = {};
            const sinter_status s = path && is_same(path, model, size)
                                        ? sinter_parser_parse_file(made, path, &e)
                                        : sinter_parser_parse_memory(made, model, size, &e);
            collect_errors(made, s, e);
            return s == SINTER_OK;
        });
    }
    bool supportsModel(void const *model, size_t size, SubGraphCollection_t &graphs,
                       char const *path = nullptr) noexcept
    {
        const bool is_supported = supportsModelV2(model, size, path);
        graphs.clear();
        for (int64_t i = 0; i < getNbSubgraphs(); i++) {
            int64_t count = 0;
            int64_t const *const nodes = getSubgraphNodes(i, count);
            graphs.emplace_back(std::vector<size_t>(nodes, nodes + count), isSubgraphSupported(i));
        }
        return is_supported;
    }
    int64_t getNbSubgraphs() const noexcept { return sinter_parser_subgraph_count(asked()); }
    bool isSubgraphSupported(int64_t index) const noexcept
    {
        uint32_t count = 0, is_supported = 0;
        return sinter_parser_subgraph(asked(), static_cast<uint32_t>(index), nullptr, 0, &count, &is_supported) ==
                   SINTER_OK &&
               is_supported;
    }
    /* The numbers of a sub-graph's nodes, valid until the next call. */
    int64_t const *getSubgraphNodes(int64_t index, int64_t &count) noexcept
    {
        uint32_t length = 0, is_supported = 0;
        count = 0;
        nodes_.clear();
        const auto i = static_cast<uint32_t>(index);
        if (sinter_parser_subgraph(asked(), i, nullptr, 0, &length, &is_supported) != SINTER_OK) return nullptr;
        std::vector<uint32_t> list(length);
        (void)sinter_parser_subgraph(asked(), i, list.data(), length, &length, &is_supported);
        nodes_.assign(list.begin(), list.end());
        count = static_cast<int64_t>(nodes_.size());
        return nodes_.data();
    }
    /* Output `index` of the layer that has this name. */
    nvinfer1::ITensor const *getLayerOutputTensor(char const *name, int64_t index) noexcept
    {
        for (int32_t i = 0; name && i < network_.getNbLayers(); i++) {
            nvinfer1::ILayer *const layer = network_.getLayer(i);
            if (!std::strcmp(layer->getName(), name) && index >= 0 && index < layer->getNbOutputs())
                return layer->getOutput(static_cast<int32_t>(index));
        }
        return nullptr;
    }
    void destroy() noexcept { delete this; }

  private:
    class one : public IParserError {
      public:
        one(ErrorCode code, std::string text, int node, std::string name, std::string op)
            : code_(code), text_(std::move(text)), node_(node), name_(std::move(name)), op_(std::move(op))
        {
        }
        ErrorCode code() const override { return code_; }
        char const *desc() const override { return text_.c_str(); }
        char const *file() const override { return ""; }
        int line() const override { return 0; }
        char const *func() const override { return ""; }
        int node() const override { return node_; }
        char const *nodeName() const override { return name_.c_str(); }
        char const *nodeOperator() const override { return op_.c_str(); }

      private:
        ErrorCode code_;
        std::string text_;
        int node_;
        std::string name_, op_;
    };
    static ErrorCode code_of(sinter_status s)
    {
        switch (s) {
        case SINTER_INVALID_MODEL: return ErrorCode::kINVALID_GRAPH;
        case SINTER_UNSUPPORTED: return ErrorCode::kUNSUPPORTED_NODE;
        case SINTER_NO_MEMORY: return ErrorCode::kMEM_ALLOC_FAILED;
        case SINTER_IO: return ErrorCode::kMODEL_DESERIALIZE_FAILED;
        default: return ErrorCode::kINTERNAL_ERROR;
        }
    }
    static void collect(void *to, char const *text, size_t length)
    {
        static_cast<std::string *>(to)->append(text, length);
    }
    static bool is_same(char const *path, void const *model, size_t size)
    {
        FILE *f = std::fopen(path, "rb");
        if (!f) return false;
        char part[4096];
        size_t at = 0, got;
        bool same = true;
        while (same && (got = std::fread(part, 1, sizeof part, f)) > 0) {
            same = got <= size - at && !std::memcmp(part, static_cast<char const *>(model) + at, got);
            at += got;
        }
        std::fclose(f);
        return same && at == size;
    }
    template <class F> bool done(F parse) noexcept
    {
        if (!attempt([&] { network_.bring_plugins(); })) return false;
        sinter_error e = {};
        const sinter_status s = parse(&e);
        asked_.reset();
        collect_errors(c_.get(), s, e);
        if (s == SINTER_OK) return true;
        fail(s, e.text);
        return false;
    }
    void collect_errors(sinter_parser *from, sinter_status s, sinter_error const &e)
    {
        errors_.clear();
        for (uint32_t i = 0; i < sinter_parser_error_count(from); i++) {
            sinter_parser_error p;
            if (sinter_parser_error_at(from, i, &p) != SINTER_OK) continue;
            errors_.emplace_back(code_of(p.status), p.message, p.node == UINT32_MAX ? -1 : static_cast<int>(p.node),
                                 p.node_name, p.op_type);
        }
        if (s != SINTER_OK && errors_.empty()) errors_.emplace_back(code_of(s), e.text, -1, "", "");
    }
    /* The parser of the last model, which supportsModelV2() may have asked about alone. */
    sinter_parser *asked() const { return asked_ ? asked_.get() : c_.get(); }
    nvinfer1::INetworkDefinition &network_;
    sinter::standard::optional<sinter::network> probe_; /* outlives asked_ */
    std::shared_ptr<sinter_parser> c_, asked_;
    std::vector<int64_t> nodes_;
    void const *model_ = nullptr;
    size_t size_ = 0;
    char const *path_ = nullptr;
    std::deque<one> errors_;
    OnnxParserFlags flags_ = 1;
};

/* Takes all weights of an engine from a model of the same graph; IRefitter::refitCudaEngine puts them in. */
class IParserRefitter : public nvinfer1::detail::reporter {
  public:
    IParserRefitter(nvinfer1::IRefitter &refitter, nvinfer1::ILogger &logger) : reporter(&logger), refitter_(refitter)
    {
    }
    ~IParserRefitter()
    {
        if (!own_.empty()) std::remove(own_.c_str());
    }
    bool refitFromFile(char const *path) noexcept
    {
        return attempt([&] {
            FILE *f = path ? std::fopen(path, "rb") : nullptr;
            if (!f) throw sinter::error(SINTER_IO, std::string("cannot open '") + (path ? path : "") + "'");
            std::fclose(f);
            refitter_.setModel(path);
        });
    }
    /* The model is kept in a file until this object goes. */
    bool refitFromBytes(void const *model, size_t size, char const *path = nullptr) noexcept
    {
        (void)path;
        return attempt([&] {
            char const *folder = std::getenv("TMPDIR");
            std::string name = std::string(folder && *folder ? folder : "/tmp") + "/sinter-model-XXXXXX";
            const int file = mkstemp(&name[0]);
            FILE *f = file < 0 ? nullptr : fdopen(file, "wb");
            if (!f) throw sinter::error(SINTER_IO, "no file can be made for the model: " + name);
            if (!own_.empty()) std::remove(own_.c_str());
            own_ = name;
            const bool is_whole = std::fwrite(model, 1, size, f) == size;
            if (std::fclose(f) || !is_whole) throw sinter::error(SINTER_IO, "the model cannot be written to " + name);
            refitter_.setModel(name);
        });
    }
    /* refitFromBytes() in two steps. The caller keeps the model until the second one. */
    bool loadModelProto(void const *model, size_t size, char const * = nullptr) noexcept
    {
        model_ = model;
        size_ = size;
        return model != nullptr;
    }
    bool loadInitializer(char const *name, void const *, size_t) noexcept { return detail::refuse(*this, name); }
    bool refitModelProto() noexcept { return model_ && refitFromBytes(model_, size_); }
    int32_t getNbErrors() const noexcept { return 0; }
    IParserError const *getError(int32_t) const noexcept { return nullptr; }
    void clearErrors() noexcept {}

  private:
    nvinfer1::IRefitter &refitter_;
    std::string own_;
    void const *model_ = nullptr;
    size_t size_ = 0;
};
inline IParserRefitter *createParserRefitter(nvinfer1::IRefitter &refitter, nvinfer1::ILogger &logger) noexcept
{
    return new (std::nothrow) IParserRefitter(refitter, logger);
}

inline IParser *createParser(nvinfer1::INetworkDefinition &network, nvinfer1::ILogger &logger) noexcept
{
    IParser *made = nullptr;
    (void)network.attempt([&] { made = new IParser(network, logger); });
    return made;
}

} // namespace nvonnxparser

extern "C" inline void *createNvOnnxParser_INTERNAL(void *network, void *logger, int32_t) noexcept
{
    return nvonnxparser::createParser(*static_cast<nvinfer1::INetworkDefinition *>(network),
                                      *static_cast<nvinfer1::ILogger *>(logger));
}
extern "C" inline void *createNvOnnxParserRefitter_INTERNAL(void *refitter, void *logger, int32_t) noexcept
{
    return nvonnxparser::createParserRefitter(*static_cast<nvinfer1::IRefitter *>(refitter),
                                              *static_cast<nvinfer1::ILogger *>(logger));
}
extern "C" inline int getNvOnnxParserVersion() noexcept
{
    return NV_ONNX_PARSER_VERSION;
}

#endif
