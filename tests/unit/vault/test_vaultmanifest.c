/*
 * test_vaultmanifest.c - shipments as bytes, and a manifest that random shipments change, beside a twin that keeps a
 * whole copy of each state; objects, paths, which states expire, and what a repository remembers.
 */
#include "base/bytes.h"
#include "base/date.h"
#include "base/hash.h"
#include "madevault.h"
#include "os/path.h"
#include "vault/vaultexpire.h"
#include "vault/vaultmemory.h"
#include "vault/vaultrows.h"
#include "vault/vaultstatus.h"

enum { FILES = 12, PIECES = 6, STATES = 60 };

/* ---- the twin ------------------------------------------------------------------------------------------------ */

/* A state: which object each piece of each file has. 0: the file ends before it. */
struct twin_state {
    uint64_t number;
    bool there[FILES];
    uint32_t ids[FILES];
    uint32_t objects[FILES][PIECES];
};

struct manifest_model {
    struct wb_vault_manifest manifest;
    struct twin_state states[STATES]; /* that can be restored; the last one is the newest */
    size_t count;
    uint32_t object; /* the last one */
    struct {
        uint64_t born;
    } births[FILES][PIECES], file_births[FILES];
    uint64_t chance;
};

static struct wb_vault_object object_of(uint32_t count)
{
    return (struct wb_vault_object){.run = 77, .count = count, .stored = 100 + count, .hash = {count * 3u, count * 5u}};
}

static const char *path_of(unsigned file)
{
    static char path[32];

    snprintf(path, sizeof path, "pages/%08u.seg", file);
    return path;
}

static void add_file(struct wb_vault_shipment *change, uint32_t id, unsigned file, uint64_t born, uint64_t died)
{
    struct wb_vault_file row = {.id = id, .kind = WB_VAULT_PAGES, .born = born, .died = died};
    struct wb_slice path;

    must_ok(wb_arena_copy(&change->arena, wb_slice(path_of(file), strlen(path_of(file)) + 1), &path));
    row.path = path.ptr;
    must_ok(wb_vec_push(&change->files, row));
}

static void add_piece(struct wb_vault_shipment *change, uint32_t file, unsigned piece, uint32_t object, uint64_t born,
                      uint64_t died)
{
    struct wb_vault_piece row = {
        .file = file, .len = 10, .offset = piece * 10u, .born = born, .died = died, .object = object_of(object)};

    must_ok(wb_vec_push(&change->pieces, row));
}

static int compare_files(const void *a, const void *b)
{
    return (int)((const struct wb_vault_file *)a)->id - (int)((const struct wb_vault_file *)b)->id;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct wb_vault_piece *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : (x->born < y->born ? -1 : x->born > y->born);
}

/* A file gets, loses or changes pieces, goes, or comes. */
static void change_file(struct manifest_model *model, struct twin_state *now, unsigned file,
                        struct wb_vault_shipment *change)
{
    uint32_t *objects = now->objects[file];
    unsigned have = 0, want = 1 + (unsigned)chance_below(&model->chance, PIECES);

    while (have < PIECES && objects[have])
        have++;
    if (now->there[file] && chance_one_in(&model->chance, 4)) {
        add_file(change, now->ids[file], file, model->file_births[file].born, now->number);
        memset(objects, 0, sizeof now->objects[file]);
        now->there[file] = false;
        return;
    }
    if (!now->there[file]) {
        now->ids[file] = change->next_file++;
        model->file_births[file].born = now->number;
        now->there[file] = true;
        add_file(change, now->ids[file], file, now->number, WB_VAULT_ALIVE);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        bool stays = i < have && i < want && !chance_one_in(&model->chance, 3);
        if (i < have && !stays)
            add_piece(change, now->ids[file], i, objects[i], model->births[file][i].born, now->number);
        if (i < want && !stays) {
            objects[i] = ++model->object;
            model->births[file][i].born = now->number;
            add_piece(change, now->ids[file], i, objects[i], now->number, WB_VAULT_ALIVE);
        } else if (i >= want) {
            objects[i] = 0;
        }
    }
}

/* The twin forgets a state; whatever its objects were. */
static void end_states(struct manifest_model *model, struct wb_vault_shipment *change)
{
    size_t kept = 0;

    for (size_t i = 0; i < model->count; i++) {
        if (model->count > STATES - 2 || chance_one_in(&model->chance, 6))
            must_ok(wb_vec_push(&change->ended, model->states[i].number));
        else
            model->states[kept++] = model->states[i];
    }
    model->count = kept;
}

static void compare_state(const struct wb_vault_manifest *manifest, const struct twin_state *state)
{
    struct wb_vault_contents contents;
    size_t files = 0;

    must_ok(wb_vault_contents_at(manifest, "the vault", state->number, &contents));
    for (size_t i = 0; i < contents.files.count; i++) {
        const struct wb_vault_state_file *file = &contents.files.items[i];
        unsigned number = (unsigned)atoi(file->file->path + strlen("pages/"));
        must(state->there[number] && file->file->id == state->ids[number]);
        for (unsigned k = 0; k < PIECES; k++)
            must(k < file->count ? contents.pieces.items[file->first + k]->object.count == state->objects[number][k]
                                 : state->objects[number][k] == 0);
    }
    for (unsigned i = 0; i < FILES; i++)
        files += state->there[i];
    must(files == contents.files.count);
    wb_vault_contents_release(&contents);
}

/* An object is needed if any state has it. */
static bool twin_needs(const struct manifest_model *model, uint32_t object)
{
    for (size_t i = 0; i < model->count; i++)
        for (unsigned f = 0; f < FILES; f++)
            for (unsigned p = 0; p < PIECES; p++)
                if (model->states[i].objects[f][p] == object)
                    return true;
    return false;
}

/* What was decoded from what was encoded is applied, so that both are tested. */
static void apply_copy(struct wb_vault_manifest *manifest, const struct wb_vault_shipment *shipment,
                       struct wb_vault_garbages *dropped)
{
    struct wb_vault_object self = object_of((uint32_t)shipment->number);
    struct wb_vault_shipment copy;
    struct wb_buf bytes = WB_BUF_INIT, again = WB_BUF_INIT;

    must_ok(wb_vault_shipment_encode(shipment, &bytes));
    must_ok(wb_vault_shipment_decode("it", &self, wb_buf_slice(&bytes), &copy));
    must_ok(wb_vault_shipment_encode(&copy, &again));
    must(wb_slice_equal(wb_buf_slice(&bytes), wb_buf_slice(&again)));
    must_ok(wb_vault_manifest_apply(manifest, "it", &self, &copy, dropped));
    wb_vault_shipment_release(&copy);
    wb_buf_release(&bytes);
    wb_buf_release(&again);
}

/* A manifest made anew from a full shipment is the same. */
static void renew(struct manifest_model *model)
{
    struct wb_vault_manifest fresh = {.number = 0};
    struct wb_vault_shipment full;

    must_ok(wb_vault_manifest_full(&model->manifest, &full));
    apply_copy(&fresh, &full, NULL);
    wb_vault_shipment_release(&full);
    wb_vault_manifest_release(&model->manifest);
    model->manifest = fresh;
}

static void ship(struct manifest_model *model, uint64_t number)
{
    struct twin_state now = model->count ? model->states[model->count - 1] : (struct twin_state){.number = 0};
    struct wb_vault_shipment change = {
        .full = number == 1, .number = number, .next_file = model->manifest.next_file, .previous = object_of(9)};
    struct wb_vault_garbages dropped = WB_VEC_INIT;

    now.number = number;
    for (unsigned i = 0; i < FILES; i++)
        if (chance_one_in(&model->chance, 3))
            change_file(model, &now, i, &change);
    end_states(model, &change);
    model->states[model->count++] = now;
    must_ok(wb_vec_push(&change.points, (struct wb_vault_point){.number = number, .time_ms = (int64_t)number}));
    if (change.files.count)
        qsort(change.files.items, change.files.count, sizeof *change.files.items, compare_files);
    if (change.pieces.count)
        qsort(change.pieces.items, change.pieces.count, sizeof *change.pieces.items, compare_pieces);
    apply_copy(&model->manifest, &change, &dropped);
    for (size_t i = 0; i < dropped.count; i++)
        must(!twin_needs(model, dropped.items[i].object.count));
    wb_vec_release(&dropped);
    wb_vault_shipment_release(&change);
}

static void test_lifetimes(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < test_rounds(40); round++) {
        struct manifest_model *model = calloc(1, sizeof *model);
        must(model != NULL);
        model->chance = chance_next(&chance);
        for (uint64_t number = 1; number < 120; number++) {
            ship(model, number);
            if (chance_one_in(&model->chance, 20))
                renew(model);
            must(model->manifest.points.count == model->count);
            for (size_t i = 0; i < model->count; i++)
                compare_state(&model->manifest, &model->states[i]);
            for (size_t i = 0; i < model->manifest.pieces.count; i++)
                must(twin_needs(model, model->manifest.pieces.items[i].object.count));
        }
        wb_vault_manifest_release(&model->manifest);
        free(model);
    }
}

/* ---- objects ------------------------------------------------------------------------------------------------- */

static void test_objects(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf contents = WB_BUF_INIT, bytes = WB_BUF_INIT, mem = WB_BUF_INIT;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        struct wb_vault_object object = {.run = chance_next(&chance), .count = 1 + round}, parsed;
        bool compress = chance_one_in(&chance, 2), same = chance_one_in(&chance, 2), shipment;
        char name[WB_OBJECT_NAME_MAX];
        struct wb_slice got;
        wb_buf_clear(&contents);
        for (uint64_t i = chance_below(&chance, 5000); i > 0; i--)
            must_ok(wb_buf_append_char(&contents, (char)(same ? 7 : chance_next(&chance))));
        must_ok(wb_vault_object_pack(WB_VAULT_BYTES, wb_buf_slice(&contents), compress, &bytes, &object));
        must(wb_vault_object_fits(&object, wb_buf_slice(&bytes)));
        must_ok(wb_vault_object_unpack("it", WB_VAULT_BYTES, wb_buf_slice(&bytes), &mem, &got));
        must(wb_slice_equal(got, wb_buf_slice(&contents)));
        must(wb_vault_object_unpack("it", WB_VAULT_HEAD, wb_buf_slice(&bytes), &mem, &got) == WB_E_CORRUPT);
        wb_vault_object_name(round % 2 ? WB_VAULT_SHIPMENTS : WB_VAULT_OBJECTS, &object, name);
        must(wb_vault_object_parse(wb_slice_str(name), &shipment, &parsed));
        must(shipment == (round % 2 != 0) && parsed.run == object.run && parsed.count == object.count);
        /* Any bit, and any end. */
        size_t at = (size_t)chance_below(&chance, bytes.len);
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ 1 << chance_below(&chance, 8));
        must(!wb_vault_object_fits(&object, wb_buf_slice(&bytes)));
        must(wb_vault_object_unpack("it", WB_VAULT_BYTES, wb_buf_slice(&bytes), &mem, &got) == WB_E_CORRUPT);
        must(wb_vault_object_unpack("it", WB_VAULT_BYTES, wb_slice(bytes.ptr, at), &mem, &got) == WB_E_CORRUPT);
    }
    wb_buf_release(&contents);
    wb_buf_release(&bytes);
    wb_buf_release(&mem);
}

/* Another format, whose checksum is right, is not damage. */
static void test_other_format(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_vault_object object = {.count = 1};
    struct wb_slice got;

    (void)state;
    must_ok(wb_vault_object_pack(WB_VAULT_HEAD, WB_SLICE_LIT("contents"), false, &bytes, &object));
    bytes.ptr[7] = '2';
    must(wb_vault_object_unpack("it", WB_VAULT_HEAD, wb_buf_slice(&bytes), &mem, &got) == WB_E_CORRUPT);
    wb_put64(bytes.ptr + 32, wb_hash64_seeded(bytes.ptr + 40, bytes.len - 40, wb_hash64(bytes.ptr, 32)));
    must(wb_vault_object_unpack("it", WB_VAULT_HEAD, wb_buf_slice(&bytes), &mem, &got) == WB_E_NEWER);
    must(strcmp(wb_error_message(), "it has format 2; this program reads format 1") == 0);
    wb_buf_release(&bytes);
    wb_buf_release(&mem);
}

static void test_names(void **state)
{
    static const char *const not_ours[] = {"",
                                           "head",
                                           "objects/",
                                           "objects/0123456789abcdef",
                                           "objects/0123456789abcdef-0000000",
                                           "shipments/0123456789ABCDEF-00000001",
                                           "objects/0123456789abcdef-00000000",
                                           "objects/0123456789abcdef-000000011",
                                           "other/0123456789abcdef-00000001",
                                           "objects/0123456789abcdef_00000001"};
    struct wb_vault_object object;
    bool shipment;

    (void)state;
    for (size_t i = 0; i < COUNT(not_ours); i++)
        must(!wb_vault_object_parse(wb_slice_str(not_ours[i]), &shipment, &object));
}

static void test_paths(void **state)
{
    static const struct {
        enum wb_vault_file_kind kind;
        bool fits;
        const char *path;
    } paths[] = {
        {WB_VAULT_PAGES, true, "pages/00000001.seg"},
        {WB_VAULT_PAGES, true, "update/node101/pages/1.2.bkt"},
        {WB_VAULT_PAGES, true, "node2/pages/1.seg"},
        {WB_VAULT_PAGES, false, "node0/pages/1.seg"},
        {WB_VAULT_PAGES, false, "nodex/pages/1.seg"},
        {WB_VAULT_PAGES, false, "pages/a/b"},
        {WB_VAULT_PAGES, false, "journal/1.wbe"},
        {WB_VAULT_PAGES, false, "pages"},
        {WB_VAULT_SMALL, true, "webbase.repo"},
        {WB_VAULT_SMALL, true, "update/node101/webbase.node"},
        {WB_VAULT_SMALL, false, "webbase.unfinished"},
        {WB_VAULT_SMALL, false, "pages/webbase.repo"},
        {WB_VAULT_OTHER, true, "journal/00000001.wbe"},
        {WB_VAULT_OTHER, true, "webdb/00000003/hold-x.y"},
        {WB_VAULT_OTHER, true, "streams/names/...stream"},
        {WB_VAULT_OTHER, false, "journal"},
        {WB_VAULT_OTHER, false, "journal/../x"},
        {WB_VAULT_OTHER, false, "journal/./x"},
        {WB_VAULT_OTHER, false, "/journal/x"},
        {WB_VAULT_OTHER, false, "journal//x"},
        {WB_VAULT_OTHER, false, "journal/x/"},
        {WB_VAULT_OTHER, false, "journal/a b"},
        {WB_VAULT_OTHER, false, "vault/owner"},
        {WB_VAULT_OTHER, false, "pages/x"},
        {WB_VAULT_OTHER, false, "journal/a/b/c/d/e/f"},
        {WB_VAULT_ROWS, true, "rows/1"},
        {WB_VAULT_ROWS, false, "rows/2"},
        {WB_VAULT_OTHER, false, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++)
        if (wb_vault_path_fits(wb_slice_str(paths[i].path), paths[i].kind) != paths[i].fits)
            must_failed(paths[i].path, __FILE__, __LINE__);
    must(!wb_vault_path_fits(wb_slice("journal/\0x", 10), WB_VAULT_OTHER));
}

/* ---- expiry -------------------------------------------------------------------------------------------------- */

static void test_expire(void **state)
{
    struct wb_vault_points points = WB_VEC_INIT;
    struct wb_vault_numbers ended = WB_VEC_INIT;
    const int64_t now = 1767225600000, day = WB_DAY_MS;
    size_t old;

    (void)state;
    /* Every ten seconds for two days. */
    for (int64_t at = now - 2 * day; at < now; at += 10000)
        must_ok(wb_vec_push(&points, (struct wb_vault_point){.number = points.count + 1, .time_ms = at}));
    must_ok(wb_vault_expire(&points, now, 7 * day, false, &ended, &old));
    size_t stay = points.count - ended.count;
    /* 90 of the last 15 minutes, one of each minute of a day, one of each hour of the other one; and where they meet.
     */
    must(old == 0 && stay >= 90 + 1425 + 24 && stay <= 90 + 1425 + 24 + 4);
    must(ended.items[ended.count - 1] <= points.count - 90);
    ended.count = 0;
    must_ok(wb_vault_expire(&points, now, day, false, &ended, &old));
    must(old >= 8640 && old <= 8641 && points.count - ended.count <= 90 + 1425 + 2);
    ended.count = 0;
    must_ok(wb_vault_expire(&points, now, 0, false, &ended, &old));
    must(ended.count == points.count && old == points.count);
    ended.count = 0;
    must_ok(wb_vault_expire(&points, now, 7 * day, true, &ended, &old));
    must(ended.count == points.count);
    wb_vec_release(&points);
    wb_vec_release(&ended);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

static void open_memory(const char *dir, struct wb_vault_memory *memory, struct wb_buf *orphan)
{
    must_ok(wb_vault_memory_open(dir, "file:///somewhere", memory, orphan));
}

static void test_memory(void **state)
{
    struct wb_vault_memory memory, again;
    struct wb_buf orphan = WB_BUF_INIT;
    char dir[DIR_MAX], parent[DIR_MAX], copy[DIR_MAX];
    uint8_t owner[WB_VAULT_ID_BYTES];

    (void)state;
    test_dir(dir);
    open_memory(dir, &memory, &orphan);
    must(memory.number == 0 && orphan.len == 0);
    must(wb_vault_memory_open(dir, "file:///somewhere", &again, &orphan) == WB_E_BUSY);
    wb_vault_memory_close(&again);
    memcpy(owner, memory.owner, sizeof owner);
    memory.term = 3;
    memory.number = 9;
    memory.since_ms = 5;
    memory.shipment = object_of(4);
    memory.attempt = 10;
    memory.run = 0xfedcba9876543210;
    memory.mark_number = 8;
    must_ok(wb_buf_append_str(&memory.mark, "a mark"));
    must_ok(wb_vec_push(&memory.stale, 17));
    must_ok(wb_vec_push(&memory.stale, UINT64_MAX));
    must_ok(wb_vault_memory_save(&memory));
    wb_vault_memory_close(&memory);
    open_memory(dir, &memory, &orphan);
    must(memcmp(owner, memory.owner, sizeof owner) == 0 && memory.term == 3 && memory.number == 9 &&
         memory.since_ms == 5);
    must(memory.attempt == 10 && memory.run == 0xfedcba9876543210 && memory.mark_number == 8);
    must(wb_slice_equal(wb_buf_slice(&memory.mark), WB_SLICE_LIT("a mark")) && orphan.len == 0);
    must(memory.stale.count == 2 && memory.stale.items[0] == 17 && memory.stale.items[1] == UINT64_MAX);
    struct wb_vault_object expected = object_of(4);
    must(wb_vault_object_equal(&memory.shipment, &expected));
    wb_vault_memory_close(&memory);
    /* A copy of the directory is another copy of the repository. */
    test_dir(parent);
    path_in(parent, "copied", copy);
    copy_repository(dir, copy);
    open_memory(copy, &memory, &orphan);
    must(memcmp(owner, memory.owner, sizeof owner) != 0 && memory.number == 0 && memory.stale.count == 0);
    must(wb_slice_equal(wb_buf_slice(&orphan), WB_SLICE_LIT("a mark")));
    wb_vault_memory_close(&memory);
    wb_buf_release(&orphan);
}

static void test_parts_and_stamps(void **state)
{
    struct wb_vault_parts parts = WB_VEC_INIT;
    struct wb_vault_stamps stamps = WB_VEC_INIT;
    struct wb_vault_memory memory;
    struct wb_buf orphan = WB_BUF_INIT, store = WB_BUF_INIT;
    struct wb_file file = WB_FILE_INIT;
    char dir[DIR_MAX], path[DIR_MAX];
    uint64_t end, number, term;

    (void)state;
    test_dir(dir);
    open_memory(dir, &memory, &orphan);
    must_ok(wb_vault_parts_open(&memory, &file, &end));
    for (uint32_t i = 1; i <= 5; i++)
        must_ok(wb_vault_parts_add(&file, &end, &(struct wb_vault_part){i, i * 10, i * 20, object_of(i)}));
    wb_file_close(&file);
    must_ok(wb_vault_parts_load(&memory, &parts));
    must(parts.count == 5 && parts.items[4].offset == 50 && parts.items[4].object.count == 5);
    snprintf(path, sizeof path, "%s/parts", memory.folder);
    flip_byte(path, 60 * 3 + 7, 4); /* the rest does not count */
    must_ok(wb_vault_parts_load(&memory, &parts));
    must(parts.count == 3);
    must_ok(wb_vault_parts_clear(&memory));
    must_ok(wb_vault_parts_load(&memory, &parts));
    must(parts.count == 0);
    must_ok(wb_vec_push(&stamps, (struct wb_vault_stamp){wb_strdup("a/b"), 7, {1, 2, 3}}));
    must_ok(wb_vec_push(&stamps, (struct wb_vault_stamp){wb_strdup("c/d"), 8, {4, 5, -6}}));
    must_ok(wb_vault_stamps_save(&memory, 11, 3, WB_SLICE_LIT("store"), &stamps));
    must_ok(wb_vault_stamps_load(&memory, &number, &term, &store, &stamps));
    const struct wb_vault_stamp *found = wb_vault_stamps_find(&stamps, "c/d");
    must(number == 11 && term == 3 && stamps.count == 2 && found && found->size == 8 && found->stamp.changed_ns == -6);
    must(wb_slice_equal(wb_buf_slice(&store), WB_SLICE_LIT("store")) && !wb_vault_stamps_find(&stamps, "a"));
    snprintf(path, sizeof path, "%s/stamps", memory.folder);
    flip_byte(path, 30, 1);
    must_ok(wb_vault_stamps_load(&memory, &number, &term, &store, &stamps));
    must(number == 0 && stamps.count == 0 && store.len == 0);
    wb_vault_memory_close(&memory);
    wb_vault_stamps_release(&stamps);
    wb_vec_release(&parts);
    wb_buf_release(&store);
}

static void replace_text(const char *path, const char *text)
{
    must_ok(wb_path_replace(path, wb_slice_str(text)));
}

/* Text of another format is refused with its number; what is damaged is forgotten. */
static void test_other_texts(void **state)
{
    static const char *const names[] = {"memory", "status"};
    struct wb_vault_memory memory;
    struct wb_vault_noted noted = {.safe_ms = 5, .error = "no way"}, got;
    struct wb_buf orphan = WB_BUF_INIT, url = WB_BUF_INIT;
    char dir[DIR_MAX], path[DIR_MAX], folder[DIR_MAX];

    (void)state;
    test_dir(dir);
    open_memory(dir, &memory, &orphan);
    memory.number = 4;
    must_ok(wb_vault_memory_save(&memory));
    must_ok(wb_vault_noted_write(&memory, &noted));
    must_ok(wb_vault_noted_read(memory.folder, &got, &url));
    must(got.safe_ms == 5 && strcmp(got.error, "no way") == 0 && strcmp(url.ptr, "file:///somewhere") == 0);
    snprintf(folder, sizeof folder, "%s", memory.folder);
    wb_vault_memory_close(&memory);
    path_in(folder, names[0], path);
    replace_text(path, "webbase vault\nformat 2\nwhatever");
    must(wb_vault_memory_open(dir, "file:///somewhere", &memory, &orphan) == WB_E_NEWER);
    must(strstr(wb_error_message(), "has format 2; this program reads format 1") != NULL);
    wb_vault_memory_close(&memory);
    replace_text(path, "webbase vault\nformat 1\nwhatever");
    open_memory(dir, &memory, &orphan);
    must(memory.number == 0);
    wb_vault_memory_close(&memory);
    must(wb_path_kind(folder) == WB_PATH_NONE); /* nothing has come of it */
    must_ok(wb_path_mkdirs(folder));
    path_in(folder, names[1], path);
    replace_text(path, "webbase backup\nformat 2\nwhatever");
    must(wb_vault_noted_read(folder, &got, &url) == WB_E_NEWER);
    replace_text(path, "webbase backup\nformat 1\nwhatever");
    must_ok(wb_vault_noted_read(folder, &got, &url));
    must(got.safe_ms == 0 && url.len == 0);
    wb_buf_release(&url);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

static void test_rows(void **state)
{
    uint64_t chance = test_seed();
    struct wb_vault_rows_writer writer = {.count = 0};
    struct wb_vault_rows_reader reader = {.name = NULL};
    char keys[300][12];

    (void)state;
    for (unsigned i = 0; i < COUNT(keys); i++) {
        snprintf(keys[i], sizeof keys[i], "%c%08u", 'a' + (int)(i / 100), i * 7);
        struct wb_vault_row row = {i / 150, wb_slice_str(keys[i]), wb_slice(keys[i], chance_below(&chance, 9))};
        if (i % 5 == 0)
            row.value = wb_slice(NULL, 0);
        must_ok(wb_vault_rows_add(&writer, &row));
    }
    wb_vault_rows_read(&reader, "it", wb_buf_slice(&writer.bytes));
    for (unsigned i = 0; i < COUNT(keys); i++) {
        must(wb_vault_rows_next(&reader) == 1);
        must(reader.row.table == i / 150 && wb_slice_equal(reader.row.key, wb_slice_str(keys[i])));
        must((reader.row.value.ptr == NULL) == (i % 5 == 0));
    }
    must(wb_vault_rows_next(&reader) == 0);
    wb_vault_rows_read(&reader, "it", wb_slice(writer.bytes.ptr, writer.bytes.len - 1));
    int more = 1;
    while (more > 0)
        more = wb_vault_rows_next(&reader);
    must(more == WB_E_CORRUPT);
    wb_vault_rows_release(&writer);
    wb_vault_rows_reader_release(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifetimes),   cmocka_unit_test(test_objects), cmocka_unit_test(test_other_format),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_paths),   cmocka_unit_test(test_expire),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_rows),    cmocka_unit_test(test_parts_and_stamps),
        cmocka_unit_test(test_other_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
