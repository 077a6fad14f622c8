/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRecurrent.h - addRNNv2 of TensorRT 5 to 9. Included by NvInfer.h. */
#ifndef NV_INFER_RECURRENT_H
#define NV_INFER_RECURRENT_H

#include "NvInfer.h"

namespace nvinfer1 {

enum class RNNOperation : int32_t { kRELU = 0, kTANH = 1, kLSTM = 2, kGRU = 3 };
enum class RNNDirection : int32_t { kUNIDIRECTION = 0, kBIDIRECTION = 1 };
enum class RNNInputMode : int32_t { kLINEAR = 0, kSKIP = 1 };
enum class RNNGateType : int32_t {
    kINPUT = 0, kOUTPUT = 1, kFORGET = 2, kUPDATE = 3, kRESET = 4, kCELL = 5, kHIDDEN = 6
};
template <> constexpr int32_t EnumMax<RNNOperation>() noexcept { return 4; }
template <> constexpr int32_t EnumMax<RNNDirection>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<RNNInputMode>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<RNNGateType>() noexcept { return 7; }

/* A stack of recurrent layers over an input [N, S, E], where N stands for any number of axes. Outputs: all states
 * [N, S, H], the last ones [N, layers, H], and the last cells of an LSTM. With two directions layers are forward and
 * backward in turn, and states of both lie side by side. What is set makes the operators behind it anew. */
class IRNNv2Layer : public ILayer {
  public:
    using ILayer::ILayer;
    LayerType getType() const noexcept override { return LayerType::kRNN_V2; }
    int32_t getLayerCount() const noexcept { return layers_; }
    int32_t getHiddenSize() const noexcept { return size_; }
    int32_t getMaxSeqLength() const noexcept { return longest_; }
    int32_t getDataLength() const noexcept { return static_cast<int32_t>(width(input_[DATA])); }
    int32_t getNbInputs() const noexcept override
    {
        int32_t made = 0;
        for (ITensor const *t : input_) made += t != nullptr;
        return made;
    }
    int32_t getNbOutputs() const noexcept override { return op_ == RNNOperation::kLSTM ? 3 : 2; }
    ITensor *getInput(int32_t index) const noexcept override { return index < INPUTS ? input_[index] : nullptr; }
    ITensor *getOutput(int32_t index) const noexcept override
    {
        return index < getNbOutputs() ? network()->wrap(sinter_layer_output(outputs_[size_t(index)], 0)) : nullptr;
    }
    void setOperation(RNNOperation op) noexcept { change(op_, op); }
    RNNOperation getOperation() const noexcept { return op_; }
    void setInputMode(RNNInputMode mode) noexcept { change(mode_, mode); }
    RNNInputMode getInputMode() const noexcept { return mode_; }
    void setDirection(RNNDirection direction) noexcept { change(direction_, direction); }
    RNNDirection getDirection() const noexcept { return direction_; }
    void setHiddenState(ITensor &t) noexcept { change(input_[HIDDEN], &t); }
    ITensor *getHiddenState() const noexcept { return input_[HIDDEN]; }
    void setCellState(ITensor &t) noexcept { change(input_[CELLS], &t); }
    ITensor *getCellState() const noexcept { return input_[CELLS]; }
    void setSequenceLengths(ITensor &t) noexcept { change(input_[LENGTHS], &t); }
    ITensor *getSequenceLengths() const noexcept { return input_[LENGTHS]; }
    /* is_w: of the input, else of the state before. The memory is borrowed until the network has been built. */
    void setWeightsForGate(int32_t layer, RNNGateType gate, bool is_w, Weights w) noexcept
    {
        put(key(false, layer, gate, is_w), w);
    }
    Weights getWeightsForGate(int32_t layer, RNNGateType gate, bool is_w) const noexcept
    {
        return found(key(false, layer, gate, is_w));
    }
    void setBiasForGate(int32_t layer, RNNGateType gate, bool is_w, Weights w) noexcept
    {
        put(key(true, layer, gate, is_w), w);
    }
    Weights getBiasForGate(int32_t layer, RNNGateType gate, bool is_w) const noexcept
    {
        return found(key(true, layer, gate, is_w));
    }

    /* ---- for INetworkDefinition ---- */
    void begin(ITensor &input, int32_t layers, int32_t size, int32_t longest, RNNOperation op)
    {
        input_[DATA] = &input;
        layers_ = layers;
        size_ = size;
        longest_ = longest;
        op_ = op;
        outputs_.push_back(get());
        make();
    }
    void make()
    {
        std::vector<sinter_layer *> old;
        std::swap(old, made_);
        try {
            connect();
        } catch (...) {
            remove(made_);
            made_ = old;
            throw;
        }
        remove(old);
    }

  private:
    enum { DATA, HIDDEN, CELLS, LENGTHS, INPUTS };
    using key = std::tuple<bool, int32_t, RNNGateType, bool>; /* is_bias, layer, gate, is_w */
    using edges = std::vector<sinter::edge>;

    template <class T> void change(T &kept, T value) noexcept
    {
        const T before = kept;
        kept = value;
        if (!attempt([&] { make(); })) kept = before;
    }
    void put(key const &k, Weights w) noexcept
    {
        const std::vector<RNNGateType> all = gates();
        if (std::find(all.begin(), all.end(), std::get<2>(k)) == all.end())
            return fail(SINTER_INVALID_ARG, "the operation of this recurrent layer has no such gate");
        if (!attempt([&] { check(w, gate_size(k)); })) return;
        weights_[k] = w;
        network()->make_later(this);
    }
    /* Elements of the weights or the bias of a gate. */
    size_t gate_size(key const &k) const
    {
        int64_t wide = 1;
        if (!std::get<0>(k)) wide = size_;
        if (!std::get<0>(k) && std::get<3>(k))
            wide = std::get<1>(k) < directions() ? width(input_[DATA]) : int64_t(size_) * directions();
        return static_cast<size_t>(size_) * static_cast<size_t>(wide);
    }
    Weights found(key const &k) const noexcept
    {
        const auto at = weights_.find(k);
        return at == weights_.end() ? Weights() : at->second;
    }
    static int64_t width(ITensor const *t)
    {
        const sinter_network_shape s = sinter::edge(t->get()).shape();
        return s.rank ? s.dim[s.rank - 1] : 0;
    }
    /* As ONNX orders them. */
    std::vector<RNNGateType> gates() const
    {
        using G = RNNGateType;
        if (op_ == RNNOperation::kLSTM) return { G::kINPUT, G::kOUTPUT, G::kFORGET, G::kCELL };
        if (op_ == RNNOperation::kGRU) return { G::kUPDATE, G::kRESET, G::kHIDDEN };
        return { G::kINPUT };
    }

    sinter::layer op(char const *type, edges in, uint32_t outputs = 1)
    {
        while (!in.back().get()) in.pop_back();
        std::vector<sinter_network_tensor *> list;
        for (sinter::edge const &e : in) list.push_back(e.get());
        made_.push_back(sinter::call(sinter_add_op, network()->net().get(), "", type, int64_t(0), list.data(),
                                     static_cast<uint32_t>(list.size()), outputs));
        return made_.back();
    }
    sinter::edge constant(sinter::tensor const &t)
    {
        const sinter::layer made = network()->net().add_constant(t, 0);
        made_.push_back(made.get());
        return made.output(0);
    }
    sinter::edge integers(sinter::dims const &list)
    {
        sinter::tensor t(SINTER_DTYPE_I64, { static_cast<int64_t>(list.size()) });
        std::memcpy(t.data(), list.data(), t.size_bytes());
        return constant(t);
    }
    sinter::edge transposed(sinter::edge const &x, sinter::dims const &order)
    {
        return op("Transpose", { x }).set("perm", order);
    }
    /* The tensor with its first axes made one, so that it has `rank`. */
    sinter::edge with_rank(sinter::edge const &x, uint32_t rank)
    {
        if (x.shape().rank == rank) return x;
        edges sizes{ integers({ -1 }) };
        if (rank > 1) sizes.push_back(op("Shape", { x }).set("start", 1 - int64_t(rank)));
        return op("Reshape", { x, op("Concat", sizes).set("axis", 0) });
    }
    /* A result [N, ., .] with the first axes of the input instead of one. */
    sinter::edge with_first_axes(sinter::edge const &y)
    {
        const sinter::edge x = input_[DATA]->get();
        if (x.shape().rank == 3) return y;
        const sinter::edge front = op("Shape", { x }).set("end", -2), back = op("Shape", { y }).set("start", 1);
        return op("Reshape", { y, op("Concat", { front, back }).set("axis", 0) });
    }
    /* States [N, layers, H] as those of each layer, [directions, N, H]. */
    edges states(ITensor const *given)
    {
        edges made(static_cast<size_t>(layers_));
        if (!given) return made;
        const sinter::edge turned = transposed(with_rank(given->get(), 3), { 1, 0, 2 });
        if (layers_ == 1) return { turned };
        const auto count = static_cast<uint32_t>(layers_);
        const sinter::layer split = op("Split", { turned }, count).set("axis", 0).set("num_outputs", layers_);
        for (uint32_t i = 0; i < count; i++) made[i] = split.output(i);
        return made;
    }
    /* [directions, gates * H, wide] of the layers of one step of the stack, or of biases [directions, 2 * gates * H]:
     * zeros where nothing is set yet. */
    sinter::edge stacked(bool is_bias, int32_t step, bool is_w, int64_t wide)
    {
        const std::vector<RNNGateType> all = gates();
        const int32_t count = directions(), halves = is_bias ? 2 : 1;
        const auto rows = static_cast<int64_t>(all.size()) * size_;
        const size_t each = static_cast<size_t>(size_) * static_cast<size_t>(wide);
        const sinter::dims shape = is_bias ? sinter::dims{ count, 2 * rows } : sinter::dims{ count, rows, wide };
        sinter::tensor t(SINTER_DTYPE_F32, shape);
        std::memset(t.data(), 0, t.size_bytes());
        float *to = static_cast<float *>(t.data());
        for (int32_t d = 0; d < count; d++)
            for (int32_t half = 0; half < halves; half++)
                for (RNNGateType const gate : all) {
                    const Weights w = found(key(is_bias, step * count + d, gate, is_bias ? half == 0 : is_w));
                    if (w.count) copy(w, to, each);
                    else if (!is_bias && is_w && step == 0 && mode_ == RNNInputMode::kSKIP)
                        for (size_t i = 0; i < std::min(size_t(size_), size_t(wide)); i++) to[i * size_t(wide) + i] = 1;
                    to += each;
                }
        return constant(t);
    }
    static void check(Weights const &w, size_t count)
    {
        if (w.type != DataType::kFLOAT || static_cast<size_t>(w.count) != count)
            throw sinter::error(SINTER_INVALID_ARG, "a gate of a recurrent layer takes " + std::to_string(count) +
                                                        " weights of kFLOAT, not " + std::to_string(w.count));
    }
    static void copy(Weights const &w, float *to, size_t count)
    {
        check(w, count);
        std::memcpy(to, w.values, count * sizeof *to);
    }
    int32_t directions() const { return direction_ == RNNDirection::kBIDIRECTION ? 2 : 1; }
    void remove(std::vector<sinter_layer *> const &list)
    {
        for (size_t i = list.size(); i-- > 0;)
            (void)sinter_network_remove_layer(network()->net().get(), list[i], nullptr);
    }
    void connect()
    {
        const auto outputs = static_cast<uint32_t>(getNbOutputs());
        const sinter::edge data = input_[DATA]->get();
        while (outputs_.size() < outputs) outputs_.push_back(network()->net().add_identity(data).get());
        std::vector<edges> last(outputs);
        const edges hidden = states(input_[HIDDEN]), cells = states(input_[CELLS]);
        const sinter::edge lengths =
            input_[LENGTHS] ? with_rank(input_[LENGTHS]->get(), 1) : sinter::edge();
        const bool is_lstm = op_ == RNNOperation::kLSTM, is_gru = op_ == RNNOperation::kGRU;
        sinter::edge x = transposed(with_rank(data, 3), { 1, 0, 2 });
        for (int32_t i = 0; i < layers_; i++) {
            const int64_t wide = i ? int64_t(size_) * directions() : width(input_[DATA]);
            edges in{ x, stacked(false, i, true, wide), stacked(false, i, false, size_), stacked(true, i, true, 1),
                      lengths, hidden[size_t(i)] };
            if (is_lstm) in.push_back(cells[size_t(i)]);
            sinter::layer step = op(is_lstm ? "LSTM" : is_gru ? "GRU" : "RNN", in, outputs);
            step.set("hidden_size", size_).set("direction", directions() == 2 ? "bidirectional" : "forward");
            if (is_gru) step.set("linear_before_reset", 1);
            if (op_ == RNNOperation::kRELU) step.set("activations", directions() == 2 ? "Relu,Relu" : "Relu");
            for (uint32_t k = 1; k < outputs; k++) last[k].push_back(step.output(k));
            x = op("Reshape", { transposed(step.output(0), { 0, 2, 1, 3 }), integers({ 0, 0, -1 }) });
        }
        last[0].push_back(x);
        for (size_t k = 0; k < outputs_.size(); k++) {
            sinter::edge y = data;
            if (k < outputs) {
                y = k && layers_ > 1 ? sinter::edge(op("Concat", last[k]).set("axis", 0)) : last[k][0];
                y = with_first_axes(transposed(y, { 1, 0, 2 }));
            }
            sinter::layer(outputs_[k]).set_input(0, y);
        }
    }

    ITensor *input_[INPUTS] = {};
    int32_t layers_ = 0, size_ = 0, longest_ = 0;
    RNNOperation op_ = RNNOperation::kRELU;
    RNNInputMode mode_ = RNNInputMode::kLINEAR;
    RNNDirection direction_ = RNNDirection::kUNIDIRECTION;
    std::map<key, Weights> weights_;
    std::vector<sinter_layer *> made_, outputs_; /* outputs_: a layer that is each output, whatever is behind it */
};

inline void INetworkDefinition::make_stale()
{
    for (IRNNv2Layer *layer : stale_) layer->make();
    stale_.clear();
}

inline IRNNv2Layer *INetworkDefinition::addRNNv2(ITensor &x, int32_t layers, int32_t size, int32_t longest,
                                                 RNNOperation op) noexcept
{
    IRNNv2Layer *const made = add<IRNNv2Layer>([&] { return net_.add_identity(edge(x)); });
    return made && attempt([&] { made->begin(x, layers, size, longest, op); }) ? made : nullptr;
}

} // namespace nvinfer1

#endif
