/* SPDX-License-Identifier: Apache-2.0 */
/* check_decoder.c - a decoder of the usual interface (past_key_values.*, present.*, sizes S, P and T) with its state in
 * the context, against the same model without: results, allocations and programs bound after the first token, times.
 *
 *     build/tests/state_check_decoder MODEL.onnx [TOKENS [CAPACITY [DEVICE]]] */
#include "decode.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static decode d = { .input = "past_key_values.*",
                        .output = "present.*",
                        .judge = "cpu",
                        .has_total = true,
                        .most = 8,
                        .tolerance = 1e-4,
                        .seed = 1,
                        .checks_growth = true };
    decode_report r;
    char why[DECODE_WHY];
    if (argc < 2) {
        (void)fprintf(stderr, "usage: check_decoder MODEL.onnx [TOKENS [CAPACITY [DEVICE]]]\n");
        return 2;
    }
    const long tokens = argc > 2 ? atol(argv[2]) : 64, capacity = argc > 3 ? atol(argv[3]) : 128;
    d.path = argv[1];
    d.capacity = (uint64_t)capacity;
    d.device = argc > 4 ? argv[4] : "cpu";
    d.rows[d.runs++] = 8;
    for (long i = 0; i < tokens && d.runs < DECODE_RUNS; i++) d.rows[d.runs++] = 1;
    const char *wrong = decode_compare(&d, &r, why);
    (void)printf("%s: %s\n  %ld tokens, capacity %ld, %s: the largest difference is %.3g; after the first token %ld "
                 "allocations, %llu programs bound\n  %.3f ms a token with state, %.3f without; %.1f MB of state\n",
                 argv[1], wrong ? wrong : "equal", tokens, capacity, d.device, r.worst, r.requests,
                 (unsigned long long)r.binds, 1e3 * r.with_s, 1e3 * r.without_s, 1e-6 * (double)r.state_bytes);
    return wrong != NULL;
}
