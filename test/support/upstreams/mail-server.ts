import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { listenLocally } from './local-server.ts';

/** A received message: its envelope, and its text with the headers. */
export type ReceivedMail = { to: string[]; text: string };

/** Starts an SMTP server that stores the messages that it receives. `refusesRecipients` makes it reject every recipient. */
export async function startMailServer() {
  const mails: ReceivedMail[] = [];
  const state = { refusesRecipients: false };
  const server = createServer((socket) => {
    const sendLine = (line: string) => socket.write(`${line}\r\n`);
    let currentMail: ReceivedMail = { to: [], text: '' };
    let isInData = false;
    socket.on('error', () => undefined);
    createInterface({ input: socket }).on('line', (line) => {
      if (isInData && line === '.') {
        mails.push(currentMail);
        [currentMail, isInData] = [{ to: [], text: '' }, false];
        sendLine('250 kept');
      } else if (isInData) currentMail.text += `${line}\n`;
      else if (/^RCPT/i.test(line) && state.refusesRecipients) sendLine('550 no such mailbox');
      else if (/^DATA/i.test(line)) {
        isInData = true;
        sendLine('354 go on');
      } else {
        if (/^RCPT/i.test(line)) currentMail.to.push(/<(.*)>/.exec(line)?.[1] ?? '');
        sendLine(/^QUIT/i.test(line) ? '221 bye' : '250 mail.example');
      }
    });
    sendLine('220 mail.example');
  });
  const { port, close } = await listenLocally(server);
  return { mails, state, url: `smtp://127.0.0.1:${port}`, close };
}
