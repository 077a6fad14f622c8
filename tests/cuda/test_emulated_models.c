/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulated_models.c - whole small models on the emulated GPU against the reference, at sizes of which only a run
 * knows whether they are equal, 1 or 0. */
#include "emulate.h"
#include "model_text.h"
#include "test.h"

#include <unistd.h>

static void same(const char *line, long least)
{
    char why[1024];
    long runs = 0;
    const char *wrong = model_compare(line, (model_device){ .kind = "cuda" }, why, &runs);
    if (!CHECK(!wrong)) printf("%s\n  %s\n", line, wrong);
    CHECK(runs >= least);
}

static void broadcasts(void)
{
    same("sym N 0 3 4; sym M 0 4 4; in x f32 N,4; in w f32 M,4; s = Shape w; e = Expand x s; y = Add e w; out y; out e",
         8);
    same("sym N 0 3 4; sym M 0 4 4; in x f32 4,N; in w f32 4,M; a = Exp x; b = Neg w; y = Mul a b; out y; out a", 8);
}

static void concats(void)
{
    same("sym N 0 2 3; sym M 0 1 5; in x f32 2,4,N; in w f32 2,4,M; a = Exp x; b = Neg w; y = Concat a b a b axis=2;"
         "out y; z = Concat y y axis=2; out z",
         12);
}

static void nothing(void)
{
    same("sym N 0 3 4; sym K 0 5 9; in x f32 2,N,K; in w f32 2,K,7; y = MatMul x w; out y", 16);
    same("sym N 0 2 4; in x f32 2,N; y = Slice x {0} {-1} {1}; z = Neg y; out y; out z", 4);
}

/* A body's results are seen on the host. What is moved there has to hold the whole slice, not one operand of the
 * Concat. */
static void slices_of_concats(void)
{
    same("sym N 1 4 9; in k i64 ; in c bool ; in x f32 N,5; in w f32 N,5; s = Loop k c body=(in i i64 ; in p bool ;"
         "q = Identity p; a = Concat x w x axis=0; b = Slice a {2} {9223372036854775807} {1} {2}; out q; out b); out s",
         3);
    same("in k i64 ; in c bool ; in x f32 4,5; in w f32 4,5; s = Loop k c body=(in i i64 ; in p bool ;"
         "q = Identity p; a = Concat x w axis=0; b = Slice a {0} {4} {1}; out q; out b); out s",
         1);
}

static const test tests[] = { T(broadcasts), T(concats), T(nothing), T(slices_of_concats), { 0 } };

int main(int argc, char **argv)
{
    char path[1024];
    if (!emulate_is_possible()) return 77;
    if (!getcwd(path, sizeof path - 64)) return 2;
    (void)strcat(path, "/tests/libsinter_emulated_cuda.so");
    (void)setenv("SINTER_LIBCUDA", path, 1);
    (void)setenv("SINTER_LIBNVRTC", path, 1);
    (void)setenv("SINTER_KERNEL_CACHE", "emulated/cache", 1);
    (void)setenv("SINTER_FAKE_SM", "90", 1);
    (void)setenv("SINTER_FAKE_DEVICES", "1", 1);
    return test_run_all(tests, argc, argv);
}
