/* SPDX-License-Identifier: Apache-2.0 */
/* use_sinter.cpp - sinter.hpp from end to end: models, networks, profiles, plugins, futures, errors. test_cpp.py
 * compiles it as C++17 and C++20 with every compiler there is, and runs it: use_sinter DIGITS.onnx SEVEN.npy FOLDER. */
#include "cpp_check.h"

#include <sinter/sinter.hpp>

#include <cmath>
#include <thread>

/* The error that f throws; its text must hold `says`. */
template <class F> static void throws(F f, sinter_status status, const char *says, int line)
{
    const auto r = sinter::attempt(f);
    check_that(!r && r.status == status && r.message.find(says) != std::string::npos, r.message.c_str(), line);
}
#define THROWS(f, status, says) throws([&] { f; }, status, says, __LINE__)

static std::size_t best(const sinter::view &scores)
{
    std::size_t at = 0;
    const auto values = scores.as<float>();
    for (std::size_t i = 0; i < values.size(); i++)
        if (values[i] > values[at]) at = i;
    return at;
}

static sinter::build_options quick()
{
    return sinter::build_options().set("tune", "off").set("threads", "1");
}

/* A log for the whole process goes to what has no environment of its own; the text of the last error is of this thread. */
static void globals(const std::string &path)
{
    int lines = 0, others = 0;
    CHECK(sinter::last_error().empty());
    sinter::log_to([&](std::string_view, std::string_view) { lines++; });
    const sinter::buffer plan = sinter::build(path, sinter::build_options().set("tune", "off"));
    const int built = lines;
    CHECK(built > 0);
    sinter::environment env;
    env.log([&](std::string_view, std::string_view) { others++; });
    CHECK(sinter::build(path, quick().use(env)).size() == plan.size() && lines == built && others > 0);
    const auto missing = sinter::attempt([&] { return sinter::build(path + ".none", sinter::build_options()); });
    CHECK(!missing && sinter::last_error() == missing.message && missing.message.find(".none") != std::string::npos);
    std::string seen = "?";
    std::thread([&] { seen = sinter::last_error(); }).join();
    CHECK(seen.empty());
    sinter::process_environment().reset();
    (void)sinter::build(path, sinter::build_options().set("tune", "off"));
    CHECK(lines == built && !sinter::last_error().empty());
}

static void models(const std::string &path, const std::string &image, const std::string &folder)
{
    int lines = 0;
    std::string phases;
    sinter::environment env;
    env.log([&](std::string_view, std::string_view) { lines++; }).limit(&sinter_limits::nodes_max, 1000);
    sinter::build_options options =
        quick().use(env).add({ { "image", { 1, 1, 28, 28 }, { 2, 1, 28, 28 }, { 4, 1, 28, 28 } } });
    options.progress = [&](std::string_view phase, double done) {
        if (done == 0.0) phases += std::string(phase) + " ";
        return true;
    };
    options->refittable = 1;
    const sinter::buffer plan = sinter::build(path, options);
    CHECK(lines > 0);
    CHECK(phases.find("import optimise") == 0);
    plan.save(folder + "/digits.sinter");

    const sinter::engine e = sinter::engine::load(folder + "/digits.sinter", sinter::engine_options().use(env));
    CHECK(e.device() == "cpu" && e.profile_count() == 1);
    CHECK(e.inputs().size() == 1 && e.inputs()[0].max[0] == 4 && e.inputs()[0].shape[0] == -1);
    CHECK(e.outputs()[0].name == "scores" && e.info().step_count > 0 && e.memory_size() > 0);
    CHECK(e.print().find("digits") != std::string::npos);

    const sinter::tensor seven = sinter::tensor::read(image);
    sinter::context c(e);
    CHECK(best(c({ { "image", seven } })["scores"]) == 7);
    c.set_input("image", seven);
    std::future<void> done = c.run_async();
    done.get();
    CHECK(best(c.output("scores")) == 7 && c.is_done());
    CHECK((c.output_shape("scores") == sinter::dims{ 1, 10 }));
    THROWS(c.output("scores").as<double>(), SINTER_INVALID_ARG, "f32, read as f64");
    THROWS(c.set_input("picture", seven), SINTER_INVALID_ARG, "picture");
    THROWS(c({ { "image", sinter::tensor(SINTER_DTYPE_F32, { 5, 1, 28, 28 }) } }), SINTER_INVALID_ARG, "5");
    c.set_input("image", sinter::tensor(SINTER_DTYPE_F32, { 3, 1, 28, 28 }));
    c.run();
    CHECK((c.output("scores").shape() == sinter::dims{ 3, 10 }));

    /* A future whose run fails throws; the context goes on. */
    sinter::context empty(e);
    auto fails = empty.run_async();
    THROWS(fails.get(), SINTER_INVALID_ARG, "image");

    /* Eight threads with a context each. */
    std::vector<std::thread> threads;
    std::vector<std::size_t> found(8);
    for (std::size_t i = 0; i < found.size(); i++)
        threads.emplace_back([&, i] { found[i] = best(sinter::context(e)({ { "image", seven } })["scores"]); });
    for (auto &t : threads) t.join();
    for (const std::size_t f : found) CHECK(f == 7);

    /* Refitted with the model's own weights it is the same; without any it has to be refitted first. */
    const sinter::engine again = sinter::engine::load(e.refit(path));
    CHECK(best(sinter::context(again)({ { "image", seven } })["scores"]) == 7);
    CHECK(!e.weights().empty() && e.strip().size() < plan.size());
    sinter::simplify(path, folder + "/simple.onnx");
    CHECK(sinter::build(folder + "/simple.onnx", quick()).size() > 0);
    CHECK(sinter::build_to(path, folder + "/two.sinter", quick()) > 0);

    THROWS(sinter::build(folder + "/missing.onnx"), SINTER_IO, "missing.onnx");
    THROWS(sinter::engine::load("x", 1), SINTER_INVALID_MODEL, "");
    THROWS(quick().set("tunes", "off"), SINTER_INVALID_ARG, "tunes");
    THROWS(quick().set("tune", "later"), SINTER_INVALID_ARG, "later");
    options.progress = [](std::string_view, double) { return false; };
    THROWS(sinter::build(path, options), SINTER_CANCELLED, "");
    sinter::environment small;
    small.limit(&sinter_limits::nodes_max, 1);
    THROWS(sinter::build(path, quick().use(small)), SINTER_NO_MEMORY, "nodes");
}

static void tensors(const std::string &folder)
{
    const sinter::tensor t(std::vector<float>{ 1, 2, 3, 4, 5, 6 }, { 2, 3 });
    CHECK(t.count() == 6 && t.size_bytes() == 24 && t.value(4) == 5.0);
    sinter::write(t, folder + "/t.npy");
    const sinter::tensor same = sinter::tensor::read(folder + "/t.npy");
    CHECK(same.shape() == t.shape() && same.as<float>()[5] == 6.0f);
    THROWS(sinter::tensor(std::vector<float>{ 1 }, { 2 }), SINTER_INVALID_ARG, "1 values for a tensor of 2");
    THROWS(sinter::tensor(SINTER_DTYPE_F32, sinter::dims(17, 1)), SINTER_INVALID_ARG, "rank 17");
    CHECK(sinter::tensor(SINTER_DTYPE_F16, { 4 }).as<std::uint16_t>().size() == 4);
}

/* A convolution, a relu and a loop, against the numbers by hand. */
static void networks(const std::string &folder)
{
    sinter::network net;
    const sinter::edge x = net.add_input("x", SINTER_DTYPE_F32, { -1, 1, 3, 3 }, { "N", nullptr, nullptr, nullptr });
    sinter::layer conv =
        net.add_convolution(x, 1, sinter::dims{ 3, 3 }, sinter::weights(std::vector<float>(9, 1.0f)), nullptr);
    conv.set("pre_padding", sinter::dims{ 1, 1 }).set("post_padding", sinter::dims{ 1, 1 }).set_name("sum of 9");
    CHECK((conv.get_ints("pre_padding") == sinter::dims{ 1, 1 }));
    const sinter::layer both = net.add_concatenation(std::vector<sinter::edge>{ conv, x }, 1);
    net.mark_output(net.add_activation(both, SINTER_ACTIVATION_RELU), "y");
    THROWS(net.add_softmax(sinter::edge(), 1u), SINTER_INVALID_ARG, "input");
    THROWS(conv.set("paddings", 1), SINTER_INVALID_ARG, "paddings");

    const sinter::edge count = net.add_constant(sinter::tensor(std::vector<std::int32_t>{ 5 }, {}), 0);
    const sinter::edge one = net.add_constant(sinter::tensor(std::vector<float>{ 1 }, { 1 }), 0);
    const sinter::loop loop = net.add_loop();
    loop.trip_limit(count, SINTER_TRIP_LIMIT_COUNT);
    const sinter::layer state = loop.recurrence(one);
    state.set_input(1, net.add_elementwise(state, state, SINTER_ELEMENTWISE_SUM));
    net.mark_output(loop.output(state, SINTER_LOOP_OUTPUT_LAST_VALUE), "power");

    CHECK(net.layers().size() >= 8 && net.inputs().size() == 1 && net.outputs().size() == 2);
    net.write_onnx(folder + "/net.onnx");
    const sinter::engine e =
        sinter::engine::load(net.build(quick().add({ { "x", { 1, 1, 3, 3 }, { 1, 1, 3, 3 }, { 2, 1, 3, 3 } } })));
    sinter::context c(e);
    auto out = c({ { "x", sinter::tensor(std::vector<float>{ 1, 2, 3, 4, 5, 6, 7, 8, -9 }, { 1, 1, 3, 3 }) } });
    CHECK((out["y"].shape() == sinter::dims{ 1, 2, 3, 3 }));
    CHECK(std::fabs(out["y"].as<float>()[4] - 27.0f) < 1e-4f && out["y"].as<float>()[17] == 0.0f);
    CHECK(out["power"].as<float>()[0] == 32.0f);

    sinter::network parsed;
    parsed.parse(folder + "/net.onnx");
    CHECK(parsed.find("y") && !parsed.find("z"));
    CHECK(sinter::engine::load(parsed.build(quick())).outputs().size() == 2);
    THROWS(parsed.parse(folder + "/t.npy"), SINTER_INVALID_MODEL, "");
}

/* A plugin in C++: twice the input. */
static void plugged()
{
    sinter_plugin twice = {};
    twice.struct_size = sizeof twice;
    twice.name = "Twice";
    twice.in_min = twice.in_max = twice.out_min = twice.out_max = 1;
    twice.shapes = [](sinter_plugin_shapes *s) -> sinter_status {
        if (s->in[0].dtype != SINTER_DTYPE_F32) return SINTER_UNSUPPORTED;
        s->out[0] = s->in[0];
        return SINTER_OK;
    };
    twice.run = [](const sinter_plugin_run *r) -> sinter_status {
        std::int64_t n = 1;
        for (std::uint32_t i = 0; i < r->in[0].rank; i++) n *= r->in[0].dim[i];
        for (std::int64_t i = 0; i < n; i++)
            static_cast<float *>(r->out[0].data)[i] = 2 * static_cast<const float *>(r->in[0].data)[i];
        return SINTER_OK;
    };
    sinter::plugins registry;
    registry.add(twice);
    CHECK(registry.count() == 1);
    THROWS(registry.add(twice), SINTER_INVALID_ARG, "Twice");
    sinter::environment env;
    env.use(registry);
    sinter::network net(env);
    const sinter::edge x = net.add_input("x", SINTER_DTYPE_F32, { 3 });
    const sinter::layer call =
        net.add_op(std::string(), std::string("Twice"), std::int64_t(1), std::vector<sinter::edge>{ x }, 1u);
    net.mark_output(call, "y");
    const sinter::engine e = sinter::engine::load(net.build(quick().use(env)), sinter::engine_options().use(env));
    sinter::context c(e);
    CHECK(c({ { "x", sinter::tensor(std::vector<float>{ 1, 2, 3 }, { 3 }) } })["y"].as<float>()[2] == 6.0f);
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    try {
        globals(argv[1]);
        tensors(argv[3]);
        models(argv[1], argv[2], argv[3]);
        networks(argv[3]);
        plugged();
    } catch (const sinter::error &e) {
        std::printf("status %d: %s\n", static_cast<int>(e.status()), e.what());
        return 1;
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}
