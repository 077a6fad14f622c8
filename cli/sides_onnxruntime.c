/* SPDX-License-Identifier: Apache-2.0 */
/* sides_onnxruntime.c - runs a model on ONNX Runtime, where python3 has it, and reads what it gave. Inputs and outputs
 * go through .npy files, in the order in which the model lists them. */
#include "sides.h"

#include "process.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char script[] =
    "import os, sys\n"
    "try:\n"
    "    import numpy, onnxruntime\n"
    "except ImportError as error:\n"
    "    sys.exit('error: python3 cannot run ONNX Runtime: %s' % error)\n"
    "model, folder = sys.argv[1:3]\n"
    "file = lambda kind, index: os.path.join(folder, '%s_%d.npy' % (kind, index))\n"
    "try:\n"
    "    options = onnxruntime.SessionOptions()\n"
    "    options.log_severity_level = 3\n"
    "    session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])\n"
    "    feed = {x.name: numpy.load(file('input', i)) for i, x in enumerate(session.get_inputs())}\n"
    "    for i, y in enumerate(session.run(None, feed)):\n"
    "        if isinstance(y, (numpy.ndarray, numpy.generic)) and y.dtype.kind in 'fiub':\n"
    "            numpy.save(file('output', i), y)\n"
    "except Exception as error:\n"
    "    sys.exit('error: ONNX Runtime: %s' % error)\n";

static bool inputs_write(const side *s, const model_face *face, const model_inputs *first, const model_inputs *second)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *io = &face->at[i];
        sinter_error error = { 0 };
        if (!io->io.is_input) continue;
        const model_input *in = model_inputs_find(first, io->name);
        if (!in) in = model_inputs_find(second, io->name);
        if (!in)
            return cli_fail("ONNX Runtime wants input '%s', and the other side has none: --input %s=FILE", io->name,
                            io->name) == 0;
        if (sinter_dtype_bits(in->tensor.dtype) < 8 || in->tensor.dtype == SINTER_DTYPE_BF16 ||
            in->tensor.dtype >= SINTER_DTYPE_F8E4M3FN)
            return cli_fail("input '%s' is %s, which NumPy cannot give to ONNX Runtime", io->name,
                            sinter_dtype_name(in->tensor.dtype)) == 0;
        char file[32];
        (void)snprintf(file, sizeof file, "input_%u.npy", index++);
        char *path = cli_join(s->folder, file);
        const sinter_status status = sinter_tensor_write(path, &in->tensor, &error);
        free(path);
        if (status != SINTER_OK) return cli_error(&error) == 0;
    }
    return true;
}

static bool results_read(side *s, const model_face *face)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < face->count; i++) {
        char file[32];
        sinter_error error = { 0 };
        if (face->at[i].io.is_input) continue;
        (void)snprintf(file, sizeof file, "output_%u.npy", index++);
        char *path = cli_join(s->folder, file);
        model_input out = { .name = cli_copy(face->at[i].name) };
        sinter_status status = SINTER_OK;
        const bool is_there = access(path, R_OK) == 0;
        if (is_there) status = sinter_tensor_read(path, &s->setup.env, &out.tensor, &out.memory, &error);
        free(path);
        if (!is_there || status != SINTER_OK) {
            free(out.name);
            if (status != SINTER_OK) return cli_error(&error) == 0;
            continue;
        }
        s->result.at = cli_grow(s->result.at, s->result.count + 1, sizeof *s->result.at);
        s->result.at[s->result.count++] = out;
    }
    return true;
}

bool side_onnxruntime(side *s, const model_inputs *first, const model_inputs *second)
{
    model_face face;
    sinter_error error = { 0 };
    if (model_face_read(s->path, &s->setup.env, &face, &error) != SINTER_OK) return cli_error(&error) == 0;
    if (!s->folder) s->folder = folder_make(NULL);
    bool is_good = s->folder && inputs_write(s, &face, first, second);
    if (is_good) {
        char *const argv[] = { "python3", "-c", (char *)(uintptr_t)script, s->path, s->folder, NULL };
        const int status = process_run(argv, NULL);
        if (status < 0) (void)cli_fail("ONNX Runtime needs python3, which was not found");
        if (status > 128) (void)cli_fail("ONNX Runtime was ended by signal %d", status - 128);
        is_good = status == 0 && results_read(s, &face);
    }
    model_face_free(&face);
    return is_good;
}
