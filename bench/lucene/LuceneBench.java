/*
 * LuceneBench - the peer of bench/run index and bench/run query: Lucene 8, one thread.
 *
 *   build TEXTS INDEX      indexes titles and texts that are already extracted (bench_query texts)
 *   html CORPUS INDEX      indexes the HTML itself: HTMLStripCharFilter
 *   merge INDEX            into one segment, which is best for queries
 *   ask INDEX QUERIES      the same queries as ours, after WARM rounds for the just-in-time compiler
 *   rank INDEX QUERIES     the numbers of the ten best pages of each query, a line of them for each line of QUERIES
 *
 * The analysis is that of EnglishAnalyzer without its stop words: ours has none. Two fields, title and body, with
 * positions; the body has the title too, so that queries need only look into one field: Lucene's best case.
 */
import java.io.*;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.*;
import org.apache.lucene.analysis.charfilter.HTMLStripCharFilter;
import org.apache.lucene.analysis.en.*;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.store.*;

public class LuceneBench {
    static final int WARM = 12, ROUNDS = 5, TOP = 10;
    static final double RAM_MB = 512;

    static class English extends Analyzer {
        final boolean html;

        English(boolean html) {
            this.html = html;
        }

        @Override
        protected Reader initReader(String field, Reader reader) {
            return html && field.equals("body") ? new HTMLStripCharFilter(reader) : reader;
        }

        @Override
        protected TokenStreamComponents createComponents(String field) {
            Tokenizer source = new StandardTokenizer();
            TokenStream words = new LowerCaseFilter(new EnglishPossessiveFilter(source));
            return new TokenStreamComponents(source, new PorterStemFilter(words));
        }
    }

    static double cpuSeconds() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime() / 1e9;
    }

    /* ---- building ---------------------------------------------------------------------------------- */

    static IndexWriter writer(String path, boolean html, IndexWriterConfig.OpenMode mode) throws IOException {
        IndexWriterConfig config = new IndexWriterConfig(new English(html));
        config.setOpenMode(mode);
        config.setRAMBufferSizeMB(RAM_MB);
        config.setMergeScheduler(new SerialMergeScheduler());
        config.setUseCompoundFile(false);
        return new IndexWriter(MMapDirectory.open(Paths.get(path)), config);
    }

    static void add(IndexWriter writer, String title, String body) throws IOException {
        Document page = new Document();
        page.add(new TextField("title", title, Field.Store.NO));
        page.add(new TextField("body", body, Field.Store.NO));
        writer.addDocument(page);
    }

    static void addTexts(IndexWriter writer, String path) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(path), 1 << 20))) {
            byte[] lengths = new byte[8];
            while (in.read(lengths, 0, 1) == 1) {
                in.readFully(lengths, 1, 7);
                ByteBuffer numbers = ByteBuffer.wrap(lengths).order(ByteOrder.LITTLE_ENDIAN);
                byte[] title = new byte[numbers.getInt()], text = new byte[numbers.getInt()];
                in.readFully(title);
                in.readFully(text);
                String name = new String(title, StandardCharsets.UTF_8);
                add(writer, name, name + "\n" + new String(text, StandardCharsets.UTF_8));
            }
        }
    }

    static void addPages(IndexWriter writer, String corpus) throws IOException {
        try (RandomAccessFile archive = new RandomAccessFile(corpus + "/pages.warc", "r");
             BufferedReader list = Files.newBufferedReader(Paths.get(corpus + "/pages.tsv"))) {
            for (String line; (line = list.readLine()) != null;) {
                String[] fields = line.split("\t");
                byte[] body = new byte[Integer.parseInt(fields[3])];
                archive.seek(Long.parseLong(fields[1]) + Long.parseLong(fields[2]));
                archive.readFully(body);
                String html = new String(body, StandardCharsets.UTF_8);
                int from = html.indexOf("<title>"), to = from < 0 ? -1 : html.indexOf("</title>", from);
                add(writer, to < 0 ? "" : html.substring(from + 7, to), html);
            }
        }
    }

    static void build(String command, String from, String path) throws IOException {
        boolean html = command.equals("html");
        try (IndexWriter writer = writer(path, html, IndexWriterConfig.OpenMode.CREATE)) {
            if (html)
                addPages(writer, from);
            else
                addTexts(writer, from);
            writer.commit();
        }
        report("build", path);
    }

    static void merge(String path) throws IOException {
        try (IndexWriter writer = writer(path, false, IndexWriterConfig.OpenMode.APPEND)) {
            writer.forceMerge(1);
            writer.commit();
        }
        report("merge", path);
    }

    /* CPU seconds since the program started, and bytes by the kind of file. */
    static void report(String bench, String path) throws IOException {
        long total = 0, docs = 0, positions = 0;
        for (File file : new File(path).listFiles()) {
            total += file.length();
            docs += file.getName().endsWith(".doc") ? file.length() : 0;
            positions += file.getName().endsWith(".pos") ? file.length() : 0;
        }
        System.out.printf(Locale.ROOT, "{\"bench\":\"%s\",\"cpu\":%.3f,\"bytes\":%d,\"bytes_docs\":%d," +
                          "\"bytes_positions\":%d}%n", bench, cpuSeconds(), total, docs, positions);
    }

    /* ---- asking ------------------------------------------------------------------------------------ */

    static String stem(Analyzer english, String word) throws IOException {
        try (TokenStream words = english.tokenStream("body", word)) {
            CharTermAttribute term = words.addAttribute(CharTermAttribute.class);
            words.reset();
            words.incrementToken();
            return term.toString();
        }
    }

    static Query query(Analyzer english, String kind, String[] words) throws IOException {
        if (kind.equals("phrase")) {
            PhraseQuery.Builder phrase = new PhraseQuery.Builder();
            for (String word : words)
                phrase.add(new Term("body", stem(english, word)));
            return phrase.build();
        }
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (String word : words)
            all.add(new TermQuery(new Term("body", stem(english, word))),
                    kind.equals("or") ? BooleanClause.Occur.SHOULD : BooleanClause.Occur.MUST);
        return all.build();
    }

    static long ask(IndexSearcher searcher, Query query, boolean count) throws IOException {
        return count ? searcher.count(query) : searcher.search(query, TOP).scoreDocs.length;
    }

    static void askClass(IndexSearcher searcher, Analyzer english, String kind, List<String[]> list, boolean count)
        throws IOException {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long found = 0;
        for (int round = 0; round < WARM; round++) {
            found = 0;
            for (String[] words : list)
                found += ask(searcher, query(english, kind, words), count);
        }
        double[] times = new double[list.size()];
        double total = 0;
        for (int i = 0; i < times.length; i++) {
            double[] rounds = new double[ROUNDS];
            for (int round = 0; round < ROUNDS; round++) {
                long start = clock.getCurrentThreadCpuTime();
                ask(searcher, query(english, kind, list.get(i)), count);
                rounds[round] = (clock.getCurrentThreadCpuTime() - start) / 1e3;
            }
            Arrays.sort(rounds);
            total += times[i] = rounds[0];
        }
        Arrays.sort(times);
        System.out.printf(Locale.ROOT, "{\"bench\":\"ask\",\"class\":\"%s\",\"way\":\"%s\",\"queries\":%d," +
                          "\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"found\":%d}%n", kind,
                          count ? "count" : "top", times.length, total / times.length,
                          times[times.length / 2], times[(times.length - 1) * 99 / 100], found);
    }

    static void askAll(String path, String queries) throws IOException {
        Map<String, List<String[]>> classes = new LinkedHashMap<>();
        for (String line : Files.readAllLines(Paths.get(queries))) {
            String[] fields = line.split("\t");
            if (!fields[0].startsWith("raw-"))
                classes.computeIfAbsent(fields[0], k -> new ArrayList<>()).add(fields[1].split(" "));
        }
        try (DirectoryReader reader = DirectoryReader.open(MMapDirectory.open(Paths.get(path)))) {
            IndexSearcher searcher = new IndexSearcher(reader);
            searcher.setQueryCache(null);
            Analyzer english = new English(false);
            for (Map.Entry<String, List<String[]>> kind : classes.entrySet())
                for (boolean count : new boolean[] {false, true})
                    askClass(searcher, english, kind.getKey(), kind.getValue(), count);
        }
    }

    /* Words are what the analyzer makes of a line: people also type punctuation. */
    static void rank(String path, String queries) throws IOException {
        try (DirectoryReader reader = DirectoryReader.open(MMapDirectory.open(Paths.get(path)))) {
            IndexSearcher searcher = new IndexSearcher(reader);
            Analyzer english = new English(false);
            for (String line : Files.readAllLines(Paths.get(queries))) {
                String[] fields = line.split("\t");
                BooleanQuery.Builder words = new BooleanQuery.Builder();
                try (TokenStream stream = english.tokenStream("body", fields[1])) {
                    CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
                    stream.reset();
                    while (stream.incrementToken())
                        words.add(new TermQuery(new Term("body", term.toString())),
                                  fields[0].equals("or") ? BooleanClause.Occur.SHOULD : BooleanClause.Occur.MUST);
                }
                StringBuilder numbers = new StringBuilder();
                for (ScoreDoc found : searcher.search(words.build(), TOP).scoreDocs)
                    numbers.append(found.doc).append(' ');
                System.out.println(numbers.toString().trim());
            }
        }
    }

    public static void main(String[] args) throws IOException {
        if (args.length == 3 && (args[0].equals("build") || args[0].equals("html")))
            build(args[0], args[1], args[2]);
        else if (args.length == 2 && args[0].equals("merge"))
            merge(args[1]);
        else if (args.length == 3 && args[0].equals("ask"))
            askAll(args[1], args[2]);
        else if (args.length == 3 && args[0].equals("rank"))
            rank(args[1], args[2]);
        else
            System.err.println("usage: build TEXTS INDEX | html CORPUS INDEX | merge INDEX | ask INDEX QUERIES | " +
                               "rank INDEX QUERIES");
    }
}
