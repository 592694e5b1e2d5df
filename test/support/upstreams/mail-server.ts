import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

/** A received message: its envelope, and its text with the headers. */
export type Mail = { to: string[]; text: string };

/** Starts an SMTP server that stores the messages that it receives. `refuses` makes it reject every recipient. */
export async function startMailServer() {
  const mails: Mail[] = [];
  const state = { refuses: false };
  const server = createServer((socket) => {
    const say = (line: string) => socket.write(`${line}\r\n`);
    let mail: Mail = { to: [], text: '' };
    let isText = false;
    socket.on('error', () => undefined);
    createInterface({ input: socket }).on('line', (line) => {
      if (isText && line === '.') {
        mails.push(mail);
        [mail, isText] = [{ to: [], text: '' }, false];
        say('250 kept');
      } else if (isText) mail.text += `${line}\n`;
      else if (/^RCPT/i.test(line) && state.refuses) say('550 nobody of that name');
      else if (/^DATA/i.test(line)) {
        isText = true;
        say('354 go on');
      } else {
        if (/^RCPT/i.test(line)) mail.to.push(/<(.*)>/.exec(line)?.[1] ?? '');
        say(/^QUIT/i.test(line) ? '221 bye' : '250 mail.example');
      }
    });
    say('220 mail.example');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    mails,
    state,
    url: `smtp://127.0.0.1:${port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
