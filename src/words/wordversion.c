/*
 * wordversion.c - tells whether two builds of the program give the same words.
 *
 * Words come from our rules, from ICU's tables of characters and from Snowball's algorithms. An index that was made
 * with other ones must be built again, not merged. ICU says which version of Unicode it has. Snowball's library has no
 * number that can be asked for, so the list of its algorithms stands for it, which most releases extend, and
 * the stems of a few words.
 */
#include "base/hash.h"
#include "words/stem.h"

#include <libstemmer.h>
#include <unicode/uchar.h>

/* Increase it whenever a text may have other words than before. */
#define RULES 1

static uint64_t mix(uint64_t version, const void *bytes, size_t len)
{
    return wb_hash64_seeded(bytes, len, version);
}

int wb_words_version(struct wb_words *words, uint64_t *version_out)
{
    static const char *const probes[] = {"networks", "skis",    "evening",     "interval",        "generously",
                                         "hausern",  "systeme", "nationalite", "continuellement", "новыми",
                                         "lopen",    "αθηνα",   "skovene"};
    uint64_t version = RULES;
    UVersionInfo unicode;
    struct wb_stems stems;

    *version_out = 0;
    u_getUnicodeVersion(unicode);
    version = mix(version, unicode, sizeof unicode);
    for (const char **name = sb_stemmer_list(); *name; name++)
        version = mix(version, *name, strlen(*name));
    for (uint8_t language = 1; language < WB_LANGUAGES; language++)
        for (size_t i = 0; i < sizeof probes / sizeof *probes && wb_stem_algorithm(language) != WB_STEM_NONE; i++) {
            int err = wb_words_stems(words, wb_slice_str(probes[i]), &language, 1, &stems);
            if (err < 0)
                return err;
            version = mix(version, stems.items[0].ptr, stems.items[0].len);
        }
    *version_out = version;
    return 0;
}
