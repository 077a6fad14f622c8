/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferBoundary.h - a network whose inputs and outputs are as the program's memory has them: in formats that are not
 * row-major (NvInferFormats.h), or quantised to 8 bits. Included by NvInfer.h; IBuilder uses it for one build. */
#ifndef NV_INFER_BOUNDARY_H
#define NV_INFER_BOUNDARY_H

#include "NvInfer.h"

#include <functional>

namespace nvinfer1 {
namespace detail {

/* Adds layers between the program's memory and the network's tensors. The destructor removes them. */
class boundary {
  public:
    /* scale: of the 8-bit numbers of a tensor, by its name; 0 where the tensor has none. */
    boundary(INetworkDefinition &network, std::function<double(std::string const &)> scale)
        : net_(network.net()), scale_(std::move(scale))
    {
        try {
            std::vector<ITensor *> outputs;
            bool is_changed = false;
            for (int32_t i = 0; i < network.getNbOutputs(); i++) {
                outputs.push_back(network.getOutput(i));
                is_changed |= !outputs.back()->isNetworkInput() && differs(*outputs.back());
            }
            for (int32_t i = 0; i < network.getNbInputs(); i++)
                if (differs(*network.getInput(i))) put_input(*network.getInput(i));
            if (is_changed) put_outputs(outputs);
        } catch (...) {
            undo();
            throw;
        }
    }
    ~boundary() { undo(); }
    boundary(boundary const &) = delete;
    boundary &operator=(boundary const &) = delete;

    /* The shape of an input in the program's memory. */
    sinter::dims stored(std::string const &name, sinter::dims const &shape) const
    {
        const auto found = layouts_.find(name);
        return found == layouts_.end() ? shape : found->second.stored(shape);
    }

    /* What the network's own tensor of an input or output is called during the build. */
    std::map<std::string, std::string> const &inner_names() const { return inner_names_; }

  private:
    static layout layout_of(ITensor const &t)
    {
        return detail::layout_of(t.getName(), shape_of(t.get()), t.getAllowedFormats());
    }
    static bool differs(ITensor const &t) { return t.is_quantized() || layout_of(t).row; }
    static sinter::dims shape_of(sinter::edge const &e)
    {
        const sinter_network_shape s = e.shape();
        return sinter::dims(s.dim, s.dim + s.rank);
    }
    static void put_shape(sinter_network_tensor *t, sinter::dims const &shape, std::vector<std::string> const &names)
    {
        sinter::call(sinter_network_tensor_set_shape, t, static_cast<uint32_t>(shape.size()), shape.data());
        for (size_t i = 0; i < shape.size(); i++)
            if (shape[i] < 0 && !names[i].empty())
                sinter::call(sinter_network_tensor_set_dim_name, t, static_cast<uint32_t>(i), names[i].c_str());
    }
    sinter::edge keep(sinter::layer const &made)
    {
        made_.push_back(made.get());
        return made.output(0);
    }
    sinter::edge numbers(sinter::dims const &values)
    {
        const sinter::tensor t(SINTER_DTYPE_I64, { static_cast<int64_t>(values.size()) });
        std::memcpy(t.data(), values.data(), t.size_bytes());
        return keep(net_.add_constant(t, 0));
    }
    sinter::edge scale(std::string const &name)
    {
        const double value = scale_(name);
        if (!(value > 0))
            throw sinter::error(SINTER_INVALID_ARG,
                                "tensor '" + name +
                                    "' has the type kINT8 and no dynamic range: setDynamicRange, or a calibrator");
        const sinter::tensor t(SINTER_DTYPE_F32, sinter::dims{});
        *static_cast<float *>(t.data()) = static_cast<float>(value);
        return keep(net_.add_constant(t, 0));
    }
    /* The network's tensor of one in memory, or the tensor in memory of one of the network, which has this rank. */
    sinter::edge format(sinter::edge const &x, layout const &l, size_t rank, bool to_memory)
    {
        const uint32_t first = sinter_network_layer_count(net_.get());
        const sinter::edge made =
            sinter::call(sinter_network_add_format, net_.get(), x.get(), static_cast<sinter_format>(l.row->format),
                         static_cast<uint32_t>(rank), l.channels, uint32_t(to_memory));
        for (uint32_t i = first; i < sinter_network_layer_count(net_.get()); i++)
            made_.push_back(sinter_network_layer(net_.get(), i));
        return made;
    }
    void mark(layout const &l, std::string const &name)
    {
        layouts_.emplace(name, l);
        const sinter::edge e = keep(net_.add_identity(numbers({ 0 })));
        e.set_name(l.mark(name));
        net_.mark_output(e);
    }
    void put_input(ITensor &t)
    {
        sinter_network_tensor *const c = t.get();
        const sinter_network_shape was = sinter::edge(c).shape();
        const sinter::dims shape(was.dim, was.dim + was.rank);
        std::vector<std::string> names;
        for (uint32_t i = 0; i < was.rank; i++) names.emplace_back(was.dim_name[i] ? was.dim_name[i] : "");
        const layout l = layout_of(t);
        std::vector<std::pair<sinter_layer *, uint32_t>> readers;
        for (sinter::layer const &reader : net_.layers())
            for (uint32_t i = 0; i < sinter_layer_input_count(reader.get()); i++)
                if (reader.input(i).get() == c) readers.emplace_back(reader.get(), i);
        undo_.push_back([=] { /* before readers have it again */
            put_shape(c, shape, names);
            sinter::call(sinter_network_tensor_set_type, c, was.dtype);
        });
        undo_.push_back([=] {
            for (auto const &reader : readers) sinter::call(sinter_layer_set_input, reader.first, reader.second, c);
        });
        sinter::edge x = c;
        if (t.is_quantized()) sinter::call(sinter_network_tensor_set_type, c, SINTER_DTYPE_I8);
        if (l.row) {
            const size_t channel = l.at(shape.size());
            std::vector<std::string> stored_names(names.begin(), names.begin() + static_cast<int64_t>(channel));
            if (!l.row->is_last) stored_names.emplace_back();
            stored_names.insert(stored_names.end(), names.begin() + static_cast<int64_t>(channel) + 1, names.end());
            stored_names.emplace_back();
            put_shape(c, l.stored(shape), stored_names);
            x = format(x, l, shape.size(), false);
            mark(l, t.getName());
        }
        if (t.is_quantized()) x = keep(net_.add_dequantize(x, scale(t.getName()), was.dtype));
        x.set_name(inner_names_[t.getName()] = std::string(t.getName()) + " [network]");
        for (auto const &reader : readers)
            sinter::call(sinter_layer_set_input, reader.first, reader.second, x.get());
    }
    void put_outputs(std::vector<ITensor *> const &outputs)
    {
        for (ITensor *t : outputs) {
            sinter_network_tensor *const c = t->get();
            sinter::call(sinter_network_unmark_output, net_.get(), c);
            undo_.insert(undo_.begin(), [this, c] { net_.mark_output(c); }); /* last of all, the first output first */
        }
        for (ITensor *t : outputs) {
            sinter::edge y = t->get();
            if (!t->isNetworkInput() && differs(*t)) {
                const std::string name = y.name();
                const size_t rank = shape_of(y).size();
                const layout l = layout_of(*t);
                y.set_name(inner_names_[name] = name + " [network]");
                sinter_network_tensor *const c = t->get();
                undo_.push_back([c, name] { sinter::edge(c).set_name(name); });
                if (t->is_quantized()) y = keep(net_.add_quantize(y, scale(name), SINTER_DTYPE_I8));
                if (l.row) y = format(y, l, rank, true);
                y.set_name(name);
                undo_.push_back([y, name] { y.set_name(name + " [memory]"); });
                if (l.row) mark(l, name);
            }
            net_.mark_output(y);
            sinter_network_tensor *const c = y.get();
            undo_.push_back([this, c] { sinter::call(sinter_network_unmark_output, net_.get(), c); });
        }
    }
    /* The last change first. What cannot be undone was not done. */
    void undo() noexcept
    {
        for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) (void)sinter::attempt(*it);
        for (auto it = made_.rbegin(); it != made_.rend(); ++it) {
            (void)sinter_network_unmark_output(net_.get(), sinter_layer_output(*it, 0), nullptr);
            (void)sinter_network_remove_layer(net_.get(), *it, nullptr);
        }
        undo_.clear();
        made_.clear();
    }
    sinter::network &net_;
    std::function<double(std::string const &)> scale_;
    std::map<std::string, layout> layouts_;
    std::map<std::string, std::string> inner_names_;
    std::vector<std::function<void()>> undo_;
    std::vector<sinter_layer *> made_;
};

} // namespace detail
} // namespace nvinfer1

#endif
