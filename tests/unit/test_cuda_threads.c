/* SPDX-License-Identifier: Apache-2.0 */
/* One CUDA device used by many threads: the same code wanted at the same moment, each with programs and streams. */
#include "base/os.h"
#include "cuda_rig.h"

enum { THREADS = 6, ROUNDS = 8 };

typedef struct user {
    rig r; /* only its own part: the device is shared */
    device *d;
    sinter_status status;
} user;

static sinter_status use(user *u, uint32_t round)
{
    rig *x = &u->r;
    const wish wishes[] = { { .variant = (uint8_t)round }, { .shared = 50000 + 1024 * round } };
    TRY(rig_steps(x, wishes, 2, round % 2, NULL));
    for (int i = 0; i < 3; i++) {
        TRY(put(x, 1, (float)i));
        TRY(b->program_launch(x->d, x->program, &x->run));
        CHECK_EQ_F(get(x, 3), i + 2);
    }
    b->program_destroy(&x->e, x->d, x->program);
    x->program = NULL;
    return SINTER_OK;
}

static void work(void *arg)
{
    user *u = arg;
    rig *x = &u->r;
    x->d = u->d;
    u->status = rig_memory(x, 2);
    for (uint32_t i = 0; i < ROUNDS && u->status == SINTER_OK; i++) u->status = use(u, i);
    x->d = NULL;
}

static void one_device_many_threads(void)
{
    static user users[THREADS];
    os_thread *thread[THREADS];
    rig r, *x = &r;
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    if (!CHECK_EQ(rig_open(x, NULL), SINTER_OK)) return;
    for (uint32_t i = 0; i < THREADS; i++) {
        rig_own(&users[i].r, -1);
        arena_init(&users[i].r.a, &users[i].r.e);
        users[i].d = x->d;
        CHECK_EQ(os_thread_start(&x->e, work, &users[i], &thread[i]), SINTER_OK);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        os_thread_join(&x->e, thread[i]);
        if (!CHECK_EQ(users[i].status, SINTER_OK)) (void)printf("%s\n", users[i].r.error.text);
        users[i].r.d = x->d;
        users[i].r.is_shared = true;
        rig_drop(&users[i].r);
        CHECK_EQ(users[i].r.memory.live, 0);
    }
    /* Each code was loaded once, whoever compiled it. */
    CHECK(fake->calls("nvrtcCompileProgram") >= ROUNDS);
    CHECK(rig_close(x));
}

static const test tests[] = { T(one_device_many_threads), { 0 } };
TEST_MAIN(tests)
