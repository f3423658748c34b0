/*
 * vec.h - a growable array of any one type.
 *
 *   items -> [ item 0 | item 1 | ... | item count-1 |  ...room...  ]
 *                                                    ^ count        ^ cap
 *
 * A vector is a plain struct of three members: items, count and cap. Its type is written where it is used,
 * so the compiler checks every item; there is no void * at the call sites. A local or a member takes WB_VEC:
 *
 *   WB_VEC(struct wb_slice) names = WB_VEC_INIT;
 *
 *   err = wb_vec_push(&names, WB_SLICE_LIT("example.org"));   // 0 or WB_E_NOMEM
 *   for (size_t i = 0; i < names.count; i++)
 *       use(names.items[i]);
 *   wb_vec_release(&names);
 *
 * A vector that other files or functions take as an argument needs a name. WB_VEC_OF is the body of such a struct:
 *
 *   struct wb_names WB_VEC_OF(struct wb_slice);
 *
 *   int wb_names_read(struct wb_names *names);
 *
 * Growing moves the items, so pointers to items are good only until the next call that may grow. A vector in which
 * all bytes are zero is valid and empty. These are macros: some evaluate their first argument several times.
 */
#ifndef WB_BASE_VEC_H
#define WB_BASE_VEC_H

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <stddef.h>
#include <string.h>

#define WB_VEC_OF(type) { type *items; size_t count, cap; }
#define WB_VEC(type) struct WB_VEC_OF(type)
#define WB_VEC_INIT {NULL, 0, 0}

/* Makes room for n items in total. 0, or WB_E_NOMEM with the vector unchanged. */
#define wb_vec_reserve(vec, n) wb_grow(&(vec)->items, &(vec)->cap, (n))

/* Appends an item, given by value. 0, or WB_E_NOMEM with the vector unchanged. */
#define wb_vec_push(vec, ...) \
    (wb_vec_reserve((vec), (vec)->count + 1) < 0 ? WB_E_NOMEM : ((vec)->items[(vec)->count++] = (__VA_ARGS__), 0))

/* Appends an item of zero bytes and returns its address; NULL when out of memory. */
#define wb_vec_add(vec)                                                                                    \
    ((__typeof__((vec)->items))(wb_vec_reserve((vec), (vec)->count + 1) < 0                                \
                                    ? NULL                                                                 \
                                    : memset(&(vec)->items[(vec)->count++], 0, sizeof *(vec)->items)))

/* Removes the last item and returns it. The vector must not be empty. */
#define wb_vec_pop(vec) (WB_CHECK((vec)->count > 0), (vec)->items[--(vec)->count])

/* Forgets the items and keeps their memory for the next ones. */
#define wb_vec_clear(vec) ((void)((vec)->count = 0))

/* Frees the memory; the vector is empty and can be used again. What the items own is the caller's to free first. */
#define wb_vec_release(vec) \
    (wb_free((vec)->items), (vec)->items = NULL, (void)((vec)->count = (vec)->cap = 0))

/*
 * The same growth for an array that is not a vector: makes room for `want` items in total in *items_at, and updates
 * *cap_at (a size_t). 0, or WB_E_NOMEM with both unchanged. Each array needs its own cap: if two arrays share one,
 * only the first grows.
 *
 *   err = wb_grow(&list->urls, &list->url_cap, list->url_count + 1);
 */
#define wb_grow(items_at, cap_at, want) wb_grow_items((items_at), (cap_at), (want), sizeof **(items_at))

/* ---- what the macros call ------------------------------------------------------------------------------------ */

/* Moves the array that *items_at points to into a larger one. `want` is more than *cap_at. */
int wb_grow_array(void *items_at, size_t *cap_at, size_t want, size_t item_bytes);

static inline int wb_grow_items(void *items_at, size_t *cap_at, size_t want, size_t item_bytes)
{
    return want <= *cap_at ? 0 : wb_grow_array(items_at, cap_at, want, item_bytes);
}

#endif
