/*
 * slice.h - borrowed bytes: a pointer and a length. Not NUL-terminated; any byte may be in it.
 *
 * Slices are passed by value. They own nothing: each is good as long as the owner of the bytes keeps them. struct
 * wb_buf (buf.h) owns bytes.
 */
#ifndef WB_BASE_SLICE_H
#define WB_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wb_slice {
    const char *ptr;
    size_t len;
};

#define WB_SLICE_EMPTY ((struct wb_slice){"", 0})
#define WB_SLICE_LIT(text) ((struct wb_slice){(text), sizeof(text) - 1})

/* The two arguments of printf's "%.*s". */
#define WB_SLICE_ARG(s) ((s).len > 0x7fffffff ? 0x7fffffff : (int)(s).len), (s).ptr

static inline struct wb_slice wb_slice(const char *ptr, size_t len)
{
    return (struct wb_slice){ptr, len};
}

static inline struct wb_slice wb_slice_str(const char *text)
{
    return (struct wb_slice){text, strlen(text)};
}

static inline bool wb_slice_equal(struct wb_slice a, struct wb_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/*
 * Compares as memcmp() does: negative if a comes before b, 0 if they are equal. A prefix comes before what it begins.
 */
static inline int wb_slice_compare(struct wb_slice a, struct wb_slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least ? memcmp(a.ptr, b.ptr, least) : 0;

    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static inline bool wb_slice_starts(struct wb_slice s, struct wb_slice prefix)
{
    return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static inline bool wb_slice_ends(struct wb_slice s, struct wb_slice suffix)
{
    return s.len >= suffix.len && memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0;
}

/* The same without regard to the case of ASCII letters. */
bool wb_slice_equal_nocase(struct wb_slice a, struct wb_slice b);
bool wb_slice_starts_nocase(struct wb_slice s, struct wb_slice prefix);

static inline bool wb_slice_ends_nocase(struct wb_slice s, struct wb_slice suffix)
{
    return s.len >= suffix.len &&
           wb_slice_equal_nocase((struct wb_slice){s.ptr + s.len - suffix.len, suffix.len}, suffix);
}

/* The part that is left without spaces, tabs, CR and LF at both ends. */
struct wb_slice wb_slice_trim(struct wb_slice s);

/* Reads decimal digits, without a sign. Returns false if there is anything else, or the number is too large. */
bool wb_slice_to_u64(struct wb_slice s, uint64_t *value_out);

/* A decimal number: 12, -0.5, 1e6. False, and 0, if the text is anything else or the number is not finite. */
bool wb_slice_to_double(struct wb_slice s, double *value_out);

/* Takes the next line off *rest, without its newline; the last line need not have one. False if *rest is empty. */
bool wb_slice_next_line(struct wb_slice *rest, struct wb_slice *line_out);

/* The same for text that others wrote, in which a line may also end with CR, or CR LF. */
bool wb_slice_next_text_line(struct wb_slice *rest, struct wb_slice *line_out);

/* ASCII characters, whatever the locale. White space is that of HTML. */
static inline bool wb_ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool wb_ascii_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool wb_ascii_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static inline char wb_ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

#endif
