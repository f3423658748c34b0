/* crawl_args.c - turns the options of crawl, generate and run into those of the rooms crawl and cycle. */
#include "cli/crawl_args.h"
#include "base/date.h"
#include "extract/extract.h"

#include <string.h>

static enum wb_scope_kind read_scope(const struct wb_options *options)
{
    const char *scope = wb_options_text(options, "scope");

    return !scope || scope[0] == 's' ? WB_SCOPE_SITE : scope[0] == 'd' ? WB_SCOPE_DOMAIN : WB_SCOPE_ANY;
}

/* Reads "images,styles" and the like, one or several times. */
static int read_with(const struct wb_options *options, unsigned *with_out)
{
    static const struct {
        const char *word;
        enum wb_extract_need need;
    } kinds[] = {{"images", WB_EXTRACT_NEED_IMAGES}, {"styles", WB_EXTRACT_NEED_STYLES},
                 {"scripts", WB_EXTRACT_NEED_SCRIPTS}, {"media", WB_EXTRACT_NEED_MEDIA}};
    size_t count;
    const char *const *list = wb_options_list(options, "with", &count);

    *with_out = 0;
    for (size_t i = 0; i < count; i++)
        for (const char *word = list[i];; word++) {
            size_t len = strcspn(word, ","), at = 0, known = sizeof kinds / sizeof *kinds;
            while (at < known && !wb_slice_equal(wb_slice(word, len), wb_slice_str(kinds[at].word)))
                at++;
            if (at == known)
                return wb_options_usage("--with takes images, styles, scripts and media, not '%.*s'", (int)len, word);
            *with_out |= kinds[at].need;
            word += len;
            if (!*word)
                break;
        }
    return 0;
}

/* Checks "image/png,text/" and the like, each item of which may have several types. */
static int check_types(const struct wb_crawl_types *types)
{
    for (size_t i = 0; i < types->count; i++)
        for (const char *word = types->items[i];; word++) {
            size_t len = strcspn(word, ",");
            if (!wb_crawl_type_is_sound(wb_slice(word, len)))
                return wb_options_usage("--types takes media types such as image/png or image/*, not '%.*s'", (int)len,
                                        word);
            word += len;
            if (!*word)
                break;
        }
    return 0;
}

int wb_crawl_args_fill(const struct wb_options *options, struct wb_crawl_options *o)
{
    *o = (struct wb_crawl_options){
        .dir = options->dir,
        .urls = options->args,
        .url_count = options->arg_count,
        .seeds_file = wb_options_text(options, "seeds"),
        .scope = read_scope(options),
        .max_pages = wb_options_number(options, "max-pages", 0),
        .max_depth = (uint32_t)wb_options_number(options, "max-depth", UINT32_MAX),
        .max_time_ms = wb_options_duration(options, "max-time", 0),
        .delay_ms = wb_options_duration(options, "delay", -1),
        .crawl_delay_max_ms = wb_options_duration(options, "max-crawl-delay", 0),
        .processes = (unsigned)wb_options_number(options, "processes", 0),
        .sites = (unsigned)wb_options_number(options, "sites", 0),
        .connections = (unsigned)wb_options_number(options, "connections", 0),
        .per_address = (unsigned)wb_options_number(options, "per-address", 0),
        .user_agent = wb_options_text(options, "user-agent"),
        .allow_private = wb_options_flag(options, "allow-private"),
        .dns_servers = wb_options_text(options, "dns"),
        .dns_rate = (unsigned)wb_options_number(options, "dns-rate", 0),
        .dispenser = wb_options_text(options, "dispenser"),
        .fresh_ms = wb_options_duration(options, "fresh", 0),
        .timeout_ms = wb_options_duration(options, "timeout", 0),
        .max_bytes = wb_options_number(options, "max-bytes", 0),
        .max_rate = wb_options_size(options, "max-rate", 0),
        .site_budget = wb_options_number(options, "site-budget", 0),
        .lifetime_days = (uint32_t)wb_options_number(options, "lifetime", 0),
        .root_first = wb_options_flag(options, "root-first"),
        .ignore_sitemaps = wb_options_flag(options, "no-sitemaps"),
        .class_name = wb_options_text(options, "class"),
        .max_links = wb_options_number(options, "max-links", 0),
        .ca_file = wb_options_text(options, "ca-file"),
    };
    o->resolve = wb_options_list(options, "resolve", &o->resolve_count);
    o->types.items = wb_options_list(options, "types", &o->types.count);
    int err = check_types(&o->types);
    return err < 0 ? err : read_with(options, &o->with);
}

/* PostgreSQL, or the repository's own SQLite database. */
static int check_dispenser(const char *url)
{
    struct wb_slice given = wb_slice_str(url ? url : "sqlite");

    if (!wb_slice_equal(given, WB_SLICE_LIT("sqlite")) && !wb_slice_starts(given, WB_SLICE_LIT("postgres://")) &&
        !wb_slice_starts(given, WB_SLICE_LIT("postgresql://")))
        return wb_options_usage("--dispenser takes a URL such as postgres://user@host/database, or sqlite, not '%s'",
                                url);
    return 0;
}

int wb_crawl_args_check(const struct wb_crawl_options *o)
{
    if (o->user_agent) {
        for (const char *c = o->user_agent; *c; c++)
            if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
                return wb_options_usage("--user-agent takes printable ASCII");
        if (!((o->user_agent[0] | 32) >= 'a' && (o->user_agent[0] | 32) <= 'z'))
            return wb_options_usage("--user-agent must start with a name, such as mybot/1.0 "
                                    "(+https://example.org/bot)");
    }
    if (o->max_bytes > 1u << 30)
        return wb_options_usage("--max-bytes takes at most %u", 1u << 30);
    return check_dispenser(o->dispenser);
}

int wb_crawl_args_fill_generate(const struct wb_options *options, struct wb_generate_options *o)
{
    const char *policy = wb_options_text(options, "policy");

    *o = (struct wb_generate_options){
        .dir = options->dir,
        .dispenser = wb_options_text(options, "dispenser"),
        .seeds_file = wb_options_text(options, "seeds"),
        .budget = wb_options_number(options, "budget", 0),
        .min_days = (double)wb_options_duration(options, "min-interval", 0) / WB_DAY_MS,
        .max_days = (double)wb_options_duration(options, "max-interval", 0) / WB_DAY_MS,
        .scope = read_scope(options),
    };
    if (policy && !wb_refresh_policy_parse(wb_slice_str(policy), &o->policy))
        return wb_options_usage("--policy: '%s' is unknown", policy);
    if (o->max_days > 0 && o->max_days < o->min_days)
        return wb_options_usage("--max-interval is less than --min-interval");
    return check_dispenser(o->dispenser);
}
