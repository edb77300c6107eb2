/* SPDX-License-Identifier: MIT */
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A web server of one page of 1 KiB, with a selector and an executor. The selector's thread
 * gives the executor each connection that has something to read. A thread of the executor
 * answers, and has the selector watch the connection again. A connection has one owner at a
 * time: its interest is empty until its thread sets it.
 *
 *     java Pool.java [PORT [ADDRESS [THREADS]]]
 */
public class Pool {
    private static final int THREADS = 32, BACKLOG = 4096, HEAD_MAX = 4096;
    private static final byte[] ANSWER = answer();

    private final Selector selector = Selector.open();
    private final ExecutorService executor;

    private Pool(int threads) throws IOException {
        executor = Executors.newFixedThreadPool(threads);
    }

    private static byte[] answer() {
        String page = "A page that was in memory all the time.\n".repeat(26).substring(0, 1024);
        String head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ";
        return (head + page.length() + "\r\n\r\n" + page).getBytes(StandardCharsets.US_ASCII);
    }

    /** The number of requests that have come whole. The rest stays in the buffer. */
    private static int requests(ByteBuffer input) {
        String text = StandardCharsets.US_ASCII.decode(input.flip()).toString();
        int found = 0, begin = 0;
        for (int end; (end = text.indexOf("\r\n\r\n", begin)) >= 0; begin = end + 4) {
            found++;
        }
        input.position(begin).compact();
        return found;
    }

    /** Returns false if the connection is over. */
    private static boolean serve(SocketChannel channel, ByteBuffer input) {
        try {
            if (channel.read(input) < 0) {
                return false;
            }
            for (int left = requests(input); left > 0; left--) {
                ByteBuffer output = ByteBuffer.wrap(ANSWER);
                while (output.hasRemaining()) {
                    channel.write(output);
                }
            }
            return input.hasRemaining();
        } catch (IOException e) {
            return false;
        }
    }

    private void work(SelectionKey key) {
        if (serve((SocketChannel) key.channel(), (ByteBuffer) key.attachment())) {
            key.interestOps(SelectionKey.OP_READ);
            selector.wakeup();
            return;
        }
        try {
            key.channel().close();
        } catch (IOException e) {
            // The channel is closed nevertheless.
        }
    }

    private void accept(ServerSocketChannel listener) throws IOException {
        SocketChannel channel = listener.accept();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(HEAD_MAX));
    }

    private void run(int port, String address) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(address, port), BACKLOG);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        System.out.println(listener.socket().getLocalPort());
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isAcceptable()) {
                    accept(listener);
                } else {
                    key.interestOps(0);
                    executor.execute(() -> work(key));
                }
            }
            selector.selectedKeys().clear();
        }
    }

    public static void main(String[] args) throws IOException {
        int port = args.length > 0 ? Integer.parseInt(args[0]) : 0;
        String address = args.length > 1 ? args[1] : "127.0.0.1";
        int threads = args.length > 2 ? Integer.parseInt(args[2]) : THREADS;
        new Pool(threads).run(port, address);
    }
}
