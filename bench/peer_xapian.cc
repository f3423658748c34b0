/*
 * peer_xapian.cc - the peer of bench/run index and bench/run query: Xapian, one thread.
 *
 *   peer_xapian build TEXTS DATABASE    indexes titles and texts that are already extracted (bench_query texts)
 *   peer_xapian html CORPUS DATABASE    indexes the HTML itself, tags taken out by the few lines below
 *   peer_xapian ask DATABASE QUERIES    the same queries as ours
 *
 * TermGenerator as its documentation shows it: English stems without positions, words with positions, titles once more
 * with a prefix of their own.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>
#include <xapian.h>

namespace {

constexpr int ROUNDS = 5, TOP = 10;

double seconds(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/* ---- building ------------------------------------------------------------------------------------ */

void add(Xapian::WritableDatabase &database, Xapian::TermGenerator &generator, const std::string &title,
         const std::string &text)
{
    Xapian::Document page;

    generator.set_document(page);
    generator.set_termpos(0);
    generator.index_text(title, 1, "S");
    generator.index_text(title);
    generator.increase_termpos();
    generator.index_text(text);
    database.add_document(page);
}

/* The HTML without comments, scripts, styles and tags. Entities stay: less work than a real parser has. */
std::string strip(const std::string &html, std::string *title)
{
    std::string text;
    size_t at = 0;

    while (at < html.size()) {
        size_t open = std::min(html.find('<', at), html.size()), close;
        text.append(html, at, open - at);
        text += ' ';
        if (html.compare(open, 4, "<!--") == 0)
            close = html.find("-->", open);
        else if (html.compare(open, 7, "<script") == 0)
            close = html.find("</script", open);
        else if (html.compare(open, 6, "<style") == 0)
            close = html.find("</style", open);
        else if (html.compare(open, 7, "<title>") == 0)
            *title = html.substr(open + 7, html.find('<', open + 7) - open - 7), close = open;
        else
            close = open;
        close = html.find('>', std::min(close, html.size()));
        at = close == std::string::npos ? html.size() : close + 1;
    }
    return text;
}

void build(bool html, const std::string &from, const char *path)
{
    Xapian::WritableDatabase database(path, Xapian::DB_CREATE_OR_OVERWRITE);
    Xapian::TermGenerator generator;

    generator.set_stemmer(Xapian::Stem("en"));
    if (html) {
        std::ifstream list(from + "/pages.tsv"), archive(from + "/pages.warc", std::ios::binary);
        for (std::string url, line; std::getline(list, line);) {
            std::istringstream fields(line);
            uint64_t offset, head, length;
            std::string title;
            fields >> url >> offset >> head >> length;
            std::string body(length, 0);
            archive.seekg(static_cast<std::streamoff>(offset + head));
            archive.read(&body[0], static_cast<std::streamsize>(length));
            std::string text = strip(body, &title);
            add(database, generator, title, text);
        }
    } else {
        std::ifstream texts(from, std::ios::binary);
        for (uint32_t lengths[2]; texts.read(reinterpret_cast<char *>(lengths), sizeof lengths);) {
            std::string title(lengths[0], 0), text(lengths[1], 0);
            texts.read(&title[0], lengths[0]);
            texts.read(&text[0], lengths[1]);
            add(database, generator, title, text);
        }
    }
    database.commit();
    database.close();
    std::printf("{\"bench\":\"build\",\"cpu\":%.3f}\n", seconds(CLOCK_PROCESS_CPUTIME_ID));
}

/* ---- asking -------------------------------------------------------------------------------------- */

Xapian::Query make_query(const std::string &kind, const std::string &words)
{
    Xapian::Stem stem("en");
    std::vector<std::string> terms;
    std::istringstream split(words);

    for (std::string word; split >> word;)
        terms.push_back(kind == "phrase" ? word : "Z" + stem(word));
    Xapian::Query::op op = kind == "phrase" ? Xapian::Query::OP_PHRASE
                           : kind == "or"   ? Xapian::Query::OP_OR
                                            : Xapian::Query::OP_AND;
    return Xapian::Query(op, terms.begin(), terms.end());
}

uint64_t ask(Xapian::Database &database, const std::string &kind, const std::string &words, bool count)
{
    Xapian::Enquire enquire(database);

    enquire.set_query(make_query(kind, words));
    if (!count)
        return enquire.get_mset(0, TOP).size();
    enquire.set_weighting_scheme(Xapian::BoolWeight());
    return enquire.get_mset(0, 0, database.get_doccount()).get_matches_estimated();
}

void ask_class(Xapian::Database &database, const std::string &kind, const std::vector<std::string> &queries, bool count)
{
    std::vector<double> times;
    double total = 0;
    uint64_t found = 0;

    for (const std::string &words : queries) {
        std::vector<double> rounds;
        found += ask(database, kind, words, count);
        for (int round = 0; round < ROUNDS; round++) {
            double start = seconds(CLOCK_THREAD_CPUTIME_ID);
            ask(database, kind, words, count);
            rounds.push_back(seconds(CLOCK_THREAD_CPUTIME_ID) - start);
        }
        std::sort(rounds.begin(), rounds.end());
        times.push_back(rounds[0] * 1e6);
        total += times.back();
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"bench\":\"ask\",\"class\":\"%s\",\"way\":\"%s\",\"queries\":%zu,\"mean_us\":%.3f,\"p50_us\":%.3f,"
                "\"p99_us\":%.3f,\"found\":%llu}\n", kind.c_str(), count ? "count" : "top", times.size(),
                total / static_cast<double>(times.size()), times[times.size() / 2],
                times[(times.size() - 1) * 99 / 100], static_cast<unsigned long long>(found));
}

void ask_all(const char *path, const char *queries)
{
    Xapian::Database database(path);
    std::vector<std::string> kinds;
    std::map<std::string, std::vector<std::string>> classes;
    std::ifstream list(queries);

    for (std::string line; std::getline(list, line);) {
        size_t tab = line.find('\t');
        std::string kind = line.substr(0, tab);
        if (kind.compare(0, 4, "raw-") == 0)
            continue;
        if (classes[kind].empty())
            kinds.push_back(kind);
        classes[kind].push_back(line.substr(tab + 1));
    }
    for (const std::string &kind : kinds)
        for (bool count : {false, true})
            ask_class(database, kind, classes[kind], count);
}

} // namespace

int main(int argc, char **argv)
{
    std::string command = argc == 4 ? argv[1] : "";

    try {
        if (command == "build" || command == "html")
            build(command == "html", argv[2], argv[3]);
        else if (command == "ask")
            ask_all(argv[2], argv[3]);
        else
            return std::cerr << "usage: peer_xapian build TEXTS DB | html CORPUS DB | ask DB QUERIES\n", 2;
    } catch (const Xapian::Error &error) {
        return std::cerr << "peer_xapian: " << error.get_description() << "\n", 1;
    }
    return 0;
}
