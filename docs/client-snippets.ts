import { clientGroups, type DeclaredClient, type Snippet } from '@toolhost/mcp-clients/client';
import { clients } from '@toolhost/mcp-clients/clients';

const withToken = { name: 'NAME', url: 'URL', token: 'TOKEN' };
const withLogin = { name: 'NAME', url: 'URL', token: undefined };

const introduction = `Connection snippets for each client. \`NAME\` is the name of the server in the client, \`URL\` its URL, and \`TOKEN\` the [credential](../clients.md). For servers with a login, omit the header or the field with the credential. The *Connect* tab of a server in the dashboard shows these snippets with the actual values.
`;

/** Generates the reference page with the connection snippets of all known clients. */
export function clientsPage(generated: string): string {
  const sections = clientGroups.flatMap((group) => [
    `## ${group}\n`,
    ...clients.filter((client) => client.group === group).map(formatSection),
  ]);
  return ['# Snippets for clients', generated, introduction, ...sections].join('\n');
}

function formatSection({ name, snippet, documentation }: DeclaredClient): string {
  const tokenSnippet = snippet(withToken);
  const loginSnippet = snippet(withLogin);
  const snippetToShow = tokenSnippet ?? loginSnippet;
  if (snippetToShow === undefined) return '';
  const [tokenNote, loginNote] = [formatNextSteps(snippetToShow), loginSnippet ? formatNextSteps(loginSnippet) : ''];
  const notes = [
    tokenSnippet === undefined ? 'Only for servers with a login.' : '',
    tokenNote,
    tokenSnippet && loginNote !== '' && loginNote !== tokenNote ? `With a login: ${lowercaseStart(loginNote)}` : '',
    loginSnippet?.install ? 'The *Connect* tab has a link that installs it.' : '',
    `Compared with its [documentation](${documentation.url}) on ${documentation.checked}.`,
  ];
  const note = notes.filter((text) => text !== '').map((text) => `- ${withCode(text)}`);
  return `### ${name}\n\n${withCode(snippetToShow.where)}\n\n${fenced(snippetToShow)}\n${note.join('\n')}\n`;
}

/** Lowercases the start of a sentence after a colon. Keeps a name in capitals. */
function lowercaseStart(text: string): string {
  return text.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}

function formatNextSteps({ after = '', command }: Snippet): string {
  return command === undefined ? after : `${after} \`${command}\``;
}

/** Formats a command as code if it is the whole text. */
function withCode(text: string): string {
  return text.replace(/^((?:npm|pip) install .+)$/, '`$1`');
}

const words: Partial<Record<Snippet['format'], string>> = { address: 'text', form: 'text' };

function fenced({ format, code }: Snippet): string {
  return `\`\`\`${words[format] ?? format}\n${code}\n\`\`\`\n`;
}
