/*
 * replay_main.c - runs a fuzz target over files instead of generated inputs.
 *
 *   replay_<name> DIR|FILE...
 *
 * Each file is one TAP test that runs in its own process, so that a crash or a hang costs
 * only that test. A missing folder counts as empty: most targets have no crashers. It never
 * generates inputs.
 */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUT_MAX ((size_t)64 << 20)
#define SECONDS_MAX 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct replay {
    const char *dir;
    unsigned tests, failed;
};

static _Noreturn void run_input(const char *path)
{
    struct wb_buf bytes = WB_BUF_INIT;

    alarm(SECONDS_MAX);
    if (wb_path_read(path, INPUT_MAX, &bytes) < 0) {
        fprintf(stderr, "%s\n", wb_error_message());
        exit(1);
    }
    /* A copy of the exact size, so that a sanitizer notices a read past the end. */
    uint8_t *exact = malloc(bytes.len ? bytes.len : 1);
    if (!exact)
        abort();
    if (bytes.len)
        memcpy(exact, bytes.ptr, bytes.len);
    LLVMFuzzerTestOneInput(exact, bytes.len);
    free(exact);
    wb_buf_release(&bytes);
    exit(0);
}

static void replay_file(struct replay *replay, const char *path)
{
    int status = -1;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_input(path);
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -1;
    replay->tests++;
    if (status == 0) {
        printf("ok %u - %s\n", replay->tests, path);
        return;
    }
    replay->failed++;
    printf("not ok %u - %s\n", replay->tests, path);
    if (WIFSIGNALED(status))
        printf("# died of signal %d\n", WTERMSIG(status));
}

static int replay_entry(void *context, const struct wb_path_entry *entry)
{
    struct replay *replay = context;

    if (entry->kind != WB_PATH_FILE)
        return 0;
    char *path = wb_path_join(replay->dir, entry->name);
    if (!path)
        return WB_E_NOMEM;
    replay_file(replay, path);
    wb_free(path);
    return 0;
}

int main(int argc, char **argv)
{
    struct replay replay = {0};

    for (int i = 1; i < argc; i++) {
        enum wb_path_kind kind = wb_path_kind(argv[i]);
        int err = 0;
        replay.dir = argv[i];
        if (kind == WB_PATH_DIR)
            err = wb_path_each(argv[i], replay_entry, &replay);
        else if (kind == WB_PATH_FILE)
            replay_file(&replay, argv[i]);
        if (err < 0) {
            printf("Bail out! %s: %s\n", argv[i], wb_error_message());
            return 1;
        }
    }
    printf("1..%u\n", replay.tests);
    return replay.failed ? 1 : 0;
}
