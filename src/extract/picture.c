/*
 * picture.c - the module for images: PNG, JPEG, GIF and WebP. Facts: width and height in pixels; the moment at which a
 * photograph was taken (EXIF) is when it was published.
 *
 * It reads only what stands before, between and behind the pixels, and decodes none. Whatever the bytes say, it looks
 * at each at most a few times.
 *
 *   PNG    signature | chunks: u32 length, type, data, crc |     IHDR: width, height; eXIf
 *   JPEG   FF D8 | segments: FF, mark, u16 length, data |        SOFn: height, width; APP1 "Exif\0\0"
 *   GIF    signature | u16 width | u16 height |
 *   WebP   "RIFF" | u32 | "WEBP" | chunks: type, u32 length, data |   VP8, VP8L, VP8X; EXIF
 */
#include "base/bytes.h"
#include "base/date.h"
#include "extract/module.h"

#include <stdio.h>

enum { EXIF_ENTRIES_MAX = 512, EXIF_DATE_BYTES = 19, PARTS_MAX = 4096 };

/* What a picture says about itself. */
struct picture {
    uint32_t width, height;
    int64_t taken_ms;
};

static struct wb_slice behind(struct wb_slice s, size_t n)
{
    return n <= s.len ? wb_slice(s.ptr + n, s.len - n) : WB_SLICE_EMPTY;
}

static struct wb_slice first(struct wb_slice s, size_t n)
{
    return wb_slice(s.ptr, n < s.len ? n : s.len);
}

static unsigned get16_be(const char *p)
{
    return (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

/* ---- EXIF: a TIFF file without a picture ------------------------------------------------------------ */

struct exif {
    struct wb_slice tiff;
    bool big;
};

static unsigned exif16(const struct exif *e, size_t at)
{
    return e->big ? get16_be(e->tiff.ptr + at) : wb_get16(e->tiff.ptr + at);
}

static uint32_t exif32(const struct exif *e, size_t at)
{
    return e->big ? wb_get32_be(e->tiff.ptr + at) : wb_get32(e->tiff.ptr + at);
}

/* Finds an entry of the directory at `at`: returns where its 12 bytes are, 0 if it has none. */
static size_t find_entry(const struct exif *e, size_t at, unsigned tag)
{
    if (at > e->tiff.len || e->tiff.len - at < 2)
        return 0;
    unsigned count = exif16(e, at);
    for (unsigned i = 0; i < count && i < EXIF_ENTRIES_MAX; i++) {
        size_t entry = at + 2 + 12 * (size_t)i;
        if (e->tiff.len - at < 2 + 12 * ((size_t)i + 1))
            return 0;
        if (exif16(e, entry) == tag)
            return entry;
    }
    return 0;
}

/* "2016:07:08 09:10:11", to which EXIF gives no zone. */
static int64_t parse_taken(struct wb_slice text)
{
    char iso[EXIF_DATE_BYTES + 2];
    int64_t time_ms = 0;

    memcpy(iso, text.ptr, EXIF_DATE_BYTES);
    iso[4] = iso[7] = '-';
    iso[10] = 'T';
    iso[EXIF_DATE_BYTES] = 'Z';
    return wb_date_parse(wb_slice(iso, EXIF_DATE_BYTES + 1), &time_ms) ? time_ms : 0;
}

static int64_t read_date(const struct exif *e, size_t directory, unsigned tag)
{
    size_t entry = find_entry(e, directory, tag);

    if (!entry || exif16(e, entry + 2) != 2 || exif32(e, entry + 4) < EXIF_DATE_BYTES)
        return 0;
    struct wb_slice text = behind(e->tiff, exif32(e, entry + 8));
    return text.len < EXIF_DATE_BYTES ? 0 : parse_taken(text);
}

static int64_t read_exif(struct wb_slice tiff)
{
    struct exif e = {tiff, wb_slice_starts(tiff, WB_SLICE_LIT("MM\0*"))};

    if (tiff.len < 8 || (!e.big && !wb_slice_starts(tiff, WB_SLICE_LIT("II*\0"))))
        return 0;
    size_t root = exif32(&e, 4), pointer = find_entry(&e, root, 0x8769);
    int64_t taken_ms = pointer ? read_date(&e, exif32(&e, pointer + 8), 0x9003) : 0; /* DateTimeOriginal */
    if (!taken_ms && pointer)
        taken_ms = read_date(&e, exif32(&e, pointer + 8), 0x9004); /* DateTimeDigitized */
    return taken_ms ? taken_ms : read_date(&e, root, 0x0132);      /* DateTime */
}

/* ---- the four formats ----------------------------------------------------------------------------- */

static void read_png(struct wb_slice s, struct picture *p)
{
    s = behind(s, 8);
    for (unsigned i = 0; s.len >= 12 && i < PARTS_MAX; i++) {
        uint32_t len = wb_get32_be(s.ptr);
        struct wb_slice data = first(behind(s, 8), len);
        if (i == 0 && (memcmp(s.ptr + 4, "IHDR", 4) != 0 || data.len < 13))
            return;
        if (i == 0) {
            p->width = wb_get32_be(data.ptr);
            p->height = wb_get32_be(data.ptr + 4);
        }
        if (memcmp(s.ptr + 4, "eXIf", 4) == 0)
            p->taken_ms = read_exif(data);
        s = behind(s, (size_t)len + 12);
    }
}

static bool is_frame(uint8_t mark) /* SOF0 to SOF15, without DHT, JPG and DAC */
{
    return mark >= 0xc0 && mark <= 0xcf && mark != 0xc4 && mark != 0xc8 && mark != 0xcc;
}

static void read_jpeg(struct wb_slice s, struct picture *p)
{
    s = behind(s, 2);
    for (unsigned i = 0; s.len >= 4 && i < PARTS_MAX; i++) {
        uint8_t mark = (uint8_t)s.ptr[1];
        if ((uint8_t)s.ptr[0] != 0xff)
            return;
        if (mark == 0xff || mark == 0x01 || (mark >= 0xd0 && mark <= 0xd8)) { /* padding, or without a length */
            s = behind(s, mark == 0xff ? 1 : 2);
            continue;
        }
        size_t len = get16_be(s.ptr + 2);
        struct wb_slice data = first(behind(s, 4), len < 2 ? 0 : len - 2);
        if (mark == 0xe1 && !p->taken_ms && wb_slice_starts(data, WB_SLICE_LIT("Exif\0\0")))
            p->taken_ms = read_exif(behind(data, 6));
        if (is_frame(mark) && data.len >= 5) {
            p->height = get16_be(data.ptr + 1);
            p->width = get16_be(data.ptr + 3);
            return;
        }
        if (mark == 0xda || mark == 0xd9 || len < 2) /* pixels, or the end */
            return;
        s = behind(s, 2 + len);
    }
}

static void read_gif(struct wb_slice s, struct picture *p)
{
    if (s.len >= 10) {
        p->width = wb_get16(s.ptr + 6);
        p->height = wb_get16(s.ptr + 8);
    }
}

static uint32_t get24(const char *p)
{
    return wb_get16(p) | (uint32_t)(uint8_t)p[2] << 16;
}

static void read_webp_chunk(const char *type, struct wb_slice data, struct picture *p)
{
    if (memcmp(type, "VP8X", 4) == 0 && data.len >= 10) {
        p->width = get24(data.ptr + 4) + 1;
        p->height = get24(data.ptr + 7) + 1;
    } else if (memcmp(type, "VP8 ", 4) == 0 && data.len >= 10 && !p->width &&
               memcmp(data.ptr + 3, "\x9d\x01\x2a", 3) == 0) {
        p->width = wb_get16(data.ptr + 6) & 0x3fff;
        p->height = wb_get16(data.ptr + 8) & 0x3fff;
    } else if (memcmp(type, "VP8L", 4) == 0 && data.len >= 5 && !p->width && data.ptr[0] == 0x2f) {
        uint32_t bits = wb_get32(data.ptr + 1);
        p->width = (bits & 0x3fff) + 1;
        p->height = (bits >> 14 & 0x3fff) + 1;
    } else if (memcmp(type, "EXIF", 4) == 0) {
        bool named = wb_slice_starts(data, WB_SLICE_LIT("Exif\0\0")); /* which some writers copy from JPEG */
        p->taken_ms = read_exif(behind(data, named ? 6 : 0));
    }
}

static void read_webp(struct wb_slice s, struct picture *p)
{
    s = behind(s, 12);
    for (unsigned i = 0; s.len >= 8 && i < PARTS_MAX; i++) {
        uint32_t len = wb_get32(s.ptr + 4);
        read_webp_chunk(s.ptr, first(behind(s, 8), len), p);
        s = behind(s, 8 + (size_t)len + (len & 1));
    }
}

/* ---- the module ----------------------------------------------------------------------------------- */

static bool accepts_picture(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("image/png")) || wb_slice_equal(type, WB_SLICE_LIT("image/jpeg")) ||
           wb_slice_equal(type, WB_SLICE_LIT("image/jpg")) || wb_slice_equal(type, WB_SLICE_LIT("image/gif")) ||
           wb_slice_equal(type, WB_SLICE_LIT("image/webp"));
}

static int put_number(struct wb_extractor *x, const char *name, uint32_t number)
{
    struct wb_slice kept;
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    int err = wb_sink_keep(x, wb_slice_str(text), &kept);
    return err < 0 ? err : wb_sink_fact(x, wb_slice_str(name), kept);
}

/* The bytes say which of the formats it is: servers are often wrong about that. */
static int run_picture(struct wb_extractor *x)
{
    struct wb_slice s = x->input->body;
    struct picture p = {0};

    if (wb_slice_starts(s, WB_SLICE_LIT("\x89PNG\r\n\x1a\n")))
        read_png(s, &p);
    else if (wb_slice_starts(s, WB_SLICE_LIT("\xff\xd8\xff")))
        read_jpeg(s, &p);
    else if (wb_slice_starts(s, WB_SLICE_LIT("GIF87a")) || wb_slice_starts(s, WB_SLICE_LIT("GIF89a")))
        read_gif(s, &p);
    else if (wb_slice_starts(s, WB_SLICE_LIT("RIFF")) && s.len >= 12 && memcmp(s.ptr + 8, "WEBP", 4) == 0)
        read_webp(s, &p);
    x->out->published_ms = wb_sink_time(p.taken_ms);
    if (!p.width || !p.height) {
        x->out->module_error = "failed";
        return 0;
    }
    int err = put_number(x, "width", p.width);
    return err < 0 ? err : put_number(x, "height", p.height);
}

const struct wb_module wb_module_picture = {
    .name = "image",
    .binary = true,
    .accepts = accepts_picture,
    .run = run_picture,
};
