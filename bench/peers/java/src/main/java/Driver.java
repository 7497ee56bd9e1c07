import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The driver of the peers in Java; bench/peers/README.md says what it is told and what it answers. */
public final class Driver {
    private static final int MOST_TOLD = 200_000;
    /** So long after the end of a job's time a wait ends. */
    private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(8);

    private static final ObjectMapper JSON =
            new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

    record Job(String name, boolean distinct, int workers, double shared, double seconds, int most,
               long hold_us, long ttl_ms, String register, boolean records, int count) {
        long ttl() {
            return ttl_ms > 0 ? ttl_ms : 30_000;
        }
    }

    static final class Cannot extends Exception {
        Cannot(String why) {
            super(why);
        }
    }

    /** The locks of Redisson: plain or fair, and with readers. */
    static final class Peer {
        private final boolean fair;
        private final boolean best;
        private final String address;
        /** For each time to live, as a client's watchdog has one. */
        private final Map<Long, RedissonClient> clients = new HashMap<>();

        Peer(boolean fair, boolean best, String address) {
            this.fair = fair;
            this.best = best;
            this.address = address;
            client(30_000);
        }

        RedissonClient client(long ttl) {
            return clients.computeIfAbsent(ttl, key -> {
                Config config = new Config();
                config.setLockWatchdogTimeout(ttl);
                SingleServerConfig server = config.useSingleServer().setAddress(address);
                if (best) {
                    // The fair lock has a channel for each thread that waits, and waits for a free one.
                    server.setSubscriptionsPerConnection(50);
                }
                return Redisson.create(config);
            });
        }

        String settings() {
            return best ? "woken by publish, 50 subscriptions per connection; a lease, no watchdog"
                    : "woken by publish, 5 subscriptions per connection; a watchdog renews";
        }

        RLock lock(String name, long ttl) {
            RedissonClient client = client(ttl);
            return fair ? client.getFairLock(name) : client.getLock(name);
        }

        RReadWriteLock both(String name, long ttl) throws Cannot {
            if (fair) {
                throw new Cannot("Redisson's fair lock has no readers");
            }
            return client(ttl).getReadWriteLock(name);
        }

        boolean acquire(RLock lock, long waitNanos, long ttl) throws InterruptedException {
            return best
                    ? lock.tryLock(TimeUnit.NANOSECONDS.toMillis(waitNanos), ttl, TimeUnit.MILLISECONDS)
                    : lock.tryLock(waitNanos, TimeUnit.NANOSECONDS);
        }

        void release(RLock lock) {
            try {
                lock.unlock();
            } catch (IllegalMonitorStateException lost) {
                System.err.println(lost.getMessage());
            }
        }
    }

    /** Sees to it that a lock's holders are alone, or readers only. */
    static final class Witness {
        private final Path register;
        private final AtomicInteger readers = new AtomicInteger();
        private final AtomicInteger writers = new AtomicInteger();
        private final AtomicLong overlaps;

        Witness(String register, AtomicLong overlaps) {
            this.register = register == null || register.isEmpty() ? null : Path.of(register);
            this.overlaps = overlaps;
        }

        void watch(boolean shared, long micros) throws IOException, InterruptedException {
            AtomicInteger here = shared ? readers : writers;
            here.incrementAndGet();
            boolean met = (shared ? writers : readers).get() > 0;
            boolean mine = !shared && register != null && enter();
            met |= !shared && register != null && !mine;
            if (met) {
                overlaps.incrementAndGet();
            }
            if (micros > 0) {
                TimeUnit.MICROSECONDS.sleep(micros);
            }
            if (mine) {
                Files.delete(register);
            }
            here.decrementAndGet();
        }

        private boolean enter() throws IOException {
            try {
                Files.newByteChannel(register, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE).close();
                return true;
            } catch (FileAlreadyExistsException taken) {
                return false;
            }
        }
    }

    /** A work job under way. */
    static final class Shift {
        private final Peer peer;
        private final Job job;
        private final AtomicLong cycles = new AtomicLong();
        private final AtomicLong failed = new AtomicLong();
        private final AtomicLong overlaps = new AtomicLong();
        private final ConcurrentLinkedQueue<long[]> records = new ConcurrentLinkedQueue<>();
        private final ConcurrentLinkedQueue<Double> times = new ConcurrentLinkedQueue<>();
        private final ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
        private long begin;

        Shift(Peer peer, Job job) {
            this.peer = peer;
            this.job = job;
        }

        /** Nanoseconds that are left of the job's time. */
        private long left() {
            return job.seconds() > 0 ? (long) (job.seconds() * 1e9) - (System.nanoTime() - begin) : Long.MAX_VALUE / 2;
        }

        /** A peer that gives up is asked again while there is time. */
        private boolean wait(RLock lock) throws InterruptedException {
            while (!peer.acquire(lock, Math.max(left() + GRACE_NANOS, 0), job.ttl())) {
                failed.incrementAndGet();
                if (left() <= 0) {
                    return false;
                }
            }
            return true;
        }

        private void rounds(RLock exclusive, RLock shared, Witness witness) throws Exception {
            for (int round = 0; (job.most() == 0 || round < job.most()) && left() > 0; round++) {
                boolean reads = shared != null && ThreadLocalRandom.current().nextDouble() < job.shared();
                RLock lock = reads ? shared : exclusive;
                long asked = micros();
                if (!wait(lock)) {
                    return;
                }
                long from = micros();
                witness.watch(reads, job.hold_us());
                long to = micros();
                peer.release(lock);
                if (cycles.incrementAndGet() > MOST_TOLD) {
                    continue;
                }
                if (job.records()) {
                    records.add(new long[] {asked, from, to, 0});
                } else {
                    times.add((double) (micros() - asked));
                }
            }
        }

        private Thread worker(String name, Witness witness) throws Cannot {
            RReadWriteLock both = job.shared() > 0 ? peer.both(name, job.ttl()) : null;
            RLock exclusive = both == null ? peer.lock(name, job.ttl()) : both.writeLock();
            RLock shared = both == null ? null : both.readLock();
            return new Thread(() -> {
                try {
                    rounds(exclusive, shared, witness);
                } catch (Throwable error) {
                    errors.add(error);
                }
            });
        }

        Map<String, Object> run() throws Exception {
            List<Thread> threads = new ArrayList<>();
            Witness everyone = new Witness(job.register(), overlaps);
            for (int i = 0; i < job.workers(); i++) {
                String own = "-" + i;
                boolean registers = job.register() != null && !job.register().isEmpty();
                threads.add(job.distinct()
                        ? worker(job.name() + own, new Witness(registers ? job.register() + own : null, overlaps))
                        : worker(job.name(), everyone));
            }
            begin = System.nanoTime();
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            double seconds = (System.nanoTime() - begin) / 1e9;
            if (!errors.isEmpty()) {
                throw new Exception(errors.peek());
            }
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("cycles", cycles.get());
            answer.put("seconds", seconds);
            answer.put("failed", failed.get());
            answer.put("overlaps", overlaps.get());
            answer.put("rss_kb", rssKb());
            answer.put("records", records);
            if (!job.records()) {
                answer.put("cycle_us", times);
            }
            return answer;
        }
    }

    private static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private static long rssKb() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }

    private static Map<String, Object> work(Peer peer, Job job) throws Exception {
        if (job.workers() < 1 || job.seconds() < 0 || (job.seconds() == 0 && job.most() < 1)) {
            throw new IllegalArgumentException("a work job needs workers, and seconds or most");
        }
        return new Shift(peer, job).run();
    }

    private static Map<String, Object> hold(Peer peer, Job job) throws Exception {
        if (job.count() < 1) {
            throw new IllegalArgumentException("a hold job needs a count");
        }
        peer.client(job.ttl());
        double[] times = new double[job.count()];
        long begin = System.nanoTime();
        for (int i = 0; i < times.length; i++) {
            long asked = System.nanoTime();
            peer.lock(job.name() + "-" + i, job.ttl()).lock();
            times[i] = (System.nanoTime() - asked) / 1e3;
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        double[] last = Arrays.copyOfRange(times, Math.max(0, times.length - 100), times.length);
        Arrays.sort(last);
        return Map.of("held", times.length, "seconds", seconds, "last_us", last[last.length / 2], "rss_kb", rssKb());
    }

    private static Map<String, ?> obey(Peer peer, String line) {
        try {
            Map<?, ?> said = JSON.readValue(line, Map.class);
            Job job = JSON.convertValue(said, Job.class);
            if ("work".equals(said.get("do"))) {
                return work(peer, job);
            }
            if ("hold".equals(said.get("do"))) {
                return hold(peer, job);
            }
            throw new Cannot("there is no job " + said.get("do"));
        } catch (Cannot why) {
            return Map.of("cannot", why.getMessage());
        } catch (Exception error) {
            return Map.of("error", String.valueOf(error.getMessage()).lines().findFirst().orElse("?"));
        }
    }

    private static void tell(Object answer) throws IOException {
        System.out.println(JSON.writeValueAsString(answer));
        System.out.flush();
    }

    private static Peer connect(List<String> words) {
        if (words.size() != 3 || !List.of("redisson", "redisson_fair").contains(words.get(0))
                || !List.of("default", "best").contains(words.get(1))) {
            throw new IllegalArgumentException("usage: Driver redisson|redisson_fair default|best ADDRESS");
        }
        return new Peer(words.get(0).equals("redisson_fair"), words.get(1).equals("best"), words.get(2));
    }

    public static void main(String[] words) throws IOException {
        Peer peer;
        try {
            peer = connect(List.of(words));
        } catch (Exception error) {
            tell(Map.of("error", error.getMessage()));
            System.exit(1);
            return;
        }
        tell(Map.of("ready", true, "version", "redisson " + Redisson.class.getPackage().getImplementationVersion(),
                "settings", peer.settings()));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            tell(obey(peer, line));
        }
        System.exit(0);
    }
}
