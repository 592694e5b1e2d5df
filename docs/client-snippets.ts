import type { DeclaredClient, Snippet } from '../src/domain/clients/client.ts';
import { clients } from '../src/domain/clients/clients.ts';

const withToken = { name: 'NAME', url: 'URL', token: 'TOKEN' };
const withLogin = { name: 'NAME', url: 'URL', token: undefined };

const introduction = `How each client is connected. \`NAME\` is the name of the server in the client, \`URL\` its address, \`TOKEN\` the credential: [which one](../clients.md). Where a server has a login, leave out the header or the field with the credential. The connect page of a server in the dashboard has all of this filled in.
`;

/** The page of the reference that shows how each known client is connected. */
export function clientsPage(generated: string): string {
  return ['# Snippets for clients', generated, introduction, ...clients.map(sectionOf)].join('\n');
}

function sectionOf({ name, snippet, documentation }: DeclaredClient): string {
  const given = snippet(withToken);
  const login = snippet(withLogin);
  const shown = given ?? login;
  if (shown === undefined) return '';
  const notes = [
    given === undefined ? 'Only for servers with a login.' : '',
    shown.after ?? '',
    given && login?.after && login.after !== given.after ? `With a login: ${continued(login.after)}` : '',
    login?.install ? 'The connect page has a link that installs it.' : '',
    `Compared with its [documentation](${documentation.url}) on ${documentation.checked}.`,
  ];
  const note = notes.filter((text) => text !== '').map((text) => `- ${withCode(text)}`);
  return `## ${name}\n\n${withCode(shown.where)}\n\n${fenced(shown)}\n${note.join('\n')}\n`;
}

/** A sentence after a colon; a name in capitals stays as it is. */
function continued(text: string): string {
  return text.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}

/** Sets a command as code: at the end of a sentence after a colon, or where it is the whole text. */
function withCode(text: string): string {
  return text
    .replace(/: ((?:export|(?:claude|codex|opencode) mcp) .+)$/, ': `$1`')
    .replace(/^((?:npm|pip) install .+)$/, '`$1`');
}

const words: Partial<Record<Snippet['format'], string>> = { address: 'text', form: 'text' };

function fenced({ format, code }: Snippet): string {
  return `\`\`\`${words[format] ?? format}\n${code}\n\`\`\`\n`;
}
