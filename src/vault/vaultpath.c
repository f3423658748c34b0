/*
 * vaultpath.c - which paths files of a vault may have. A restore writes them below the directory of a repository, so
 * they are a closed grammar: relative, in the folders of a repository, of harmless characters, without "." and "..".
 */
#include "vault/vaultmanifest.h"

#define LIT(text)                                                                                                      \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }

enum { DEPTH_MAX = 6, COMPONENT_MAX = 200 };

static bool is_path_char(char c)
{
    return wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || c == '.' || c == '_' || c == '-';
}

static bool component_fits(struct wb_slice component)
{
    if (component.len == 0 || component.len > COMPONENT_MAX || wb_slice_equal(component, WB_SLICE_LIT(".")) ||
        wb_slice_equal(component, WB_SLICE_LIT("..")))
        return false;
    for (size_t i = 0; i < component.len; i++)
        if (!is_path_char(component.ptr[i]))
            return false;
    return true;
}

/* Splits a path; false if it is not one. */
static bool split(struct wb_slice path, struct wb_slice components[DEPTH_MAX], size_t *count_out)
{
    *count_out = 0;
    if (path.len == 0 || path.len > WB_VAULT_PATH_MAX)
        return false;
    for (;;) {
        const char *slash = memchr(path.ptr, '/', path.len);
        struct wb_slice component = {path.ptr, slash ? (size_t)(slash - path.ptr) : path.len};
        if (*count_out == DEPTH_MAX || !component_fits(component))
            return false;
        components[(*count_out)++] = component;
        if (!slash)
            return true;
        path.ptr += component.len + 1;
        path.len -= component.len + 1;
    }
}

/* "node1" and so on: a folder of a node inside the repository. */
static bool is_node(struct wb_slice component)
{
    uint64_t number;

    return wb_slice_starts(component, WB_SLICE_LIT("node")) &&
           wb_slice_to_u64(wb_slice(component.ptr + 4, component.len - 4), &number) && number > 0 &&
           component.ptr[4] != '0';
}

/* Of pages and their small files, which are also in folders of nodes and of update nodes. */
static bool store_path_fits(const struct wb_slice *components, size_t count, enum wb_vault_file_kind kind)
{
    const struct wb_slice small[] = {LIT("webbase.repo"), LIT("webbase.node")};

    if (count > 1 && wb_slice_equal(components[0], WB_SLICE_LIT("update")))
        components++, count--;
    if (count > 1 && is_node(components[0]))
        components++, count--;
    if (kind == WB_VAULT_PAGES)
        return count == 2 && wb_slice_equal(components[0], WB_SLICE_LIT("pages"));
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (count == 1 && wb_slice_equal(components[0], small[i]))
            return true;
    return false;
}

bool wb_vault_path_fits(struct wb_slice path, enum wb_vault_file_kind kind)
{
    const struct wb_slice folders[] = {LIT("journal"), LIT("webdb"), LIT("index"), LIT("graph"), LIT("streams")};
    struct wb_slice components[DEPTH_MAX];
    size_t count;

    if (!split(path, components, &count))
        return false;
    switch (kind) {
    case WB_VAULT_PAGES:
    case WB_VAULT_SMALL:
        return store_path_fits(components, count, kind);
    case WB_VAULT_ROWS:
        return wb_slice_equal(path, WB_SLICE_LIT("rows/0")) || wb_slice_equal(path, WB_SLICE_LIT("rows/1"));
    case WB_VAULT_OTHER:
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
            if (count >= 2 && wb_slice_equal(components[0], folders[i]))
                return true;
        return false;
    }
    return false;
}
