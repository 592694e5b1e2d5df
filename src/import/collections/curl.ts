import type { ApiDescription } from '../model.ts';
import { type DescribedRequest, describeRequests } from './described-requests.ts';
import type { BodyField, RequestBody } from './request-bodies.ts';
import { shellCommands } from './shell-words.ts';

/** Whether a text begins with a curl command, perhaps behind comments, a prompt or what a script does before. */
export function isCurl(text: string): boolean {
  const start = text.slice(0, 10_000);
  return (
    /^(?:\s*(?:#[^\n]*\n|\$\s))*\s*curl(?:\.exe)?\s/.test(start) ||
    /^(?:\s*(?:#[^\n]*|(?:export\s+)?\w+=[^\n]*|(?:set|echo|cd|source)\s[^\n]*)\n)+\s*(?:\$\s+)?curl(?:\.exe)?\s/.test(
      start,
    )
  );
}

/** Reads one or several curl commands. */
export function readCurl(text: string): ApiDescription {
  const commands = shellCommands(text).filter(([program]) => /(?:^|\/)curl(?:\.exe)?$/.test(program ?? ''));
  const requests = commands.flatMap((words, index) => requestOf(words.slice(1), index));
  return describeRequests(requests, { format: 'curl', version: '', title: titleOf(requests), description: '' });
}

function titleOf([first]: readonly DescribedRequest[]): string {
  const host = /^(?:[a-z]+:\/\/)?(?:[^/?#]*@)?([^/?#@]+)/i.exec(first?.url ?? '')?.[1];
  return host === undefined || host.includes('{{') ? 'curl' : host;
}

/** Options with a value that matter, and those whose value is skipped. */
const valued =
  /^(?:-[XHdFuAbeoTwmxKcECrtyYzPQDU]|--(?:request|header|data(?:-raw|-binary|-ascii|-urlencode)?|json|form(?:-string)?|user|user-agent|cookie|referer|output|upload-file|write-out|max-time|proxy|config|cookie-jar|cert|key|cacert|connect-timeout|retry|resolve|url|url-query|oauth2-bearer|aws-sigv4|ciphers|interface|limit-rate|max-redirs|noproxy|range|tlsv?[\d.]*))$/;

type Command = {
  method: string | undefined;
  url: string | undefined;
  headers: [string, string][];
  data: string[];
  fields: BodyField[];
  isQuery: boolean;
  isJson: boolean;
  auth: DescribedRequest['auth'];
};

function requestOf(words: readonly string[], index: number): DescribedRequest[] {
  const command: Command = {
    method: undefined,
    url: undefined,
    headers: [],
    data: [],
    fields: [],
    isQuery: false,
    isJson: false,
    auth: undefined,
  };
  const rest = words.flatMap(splitOption);
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] as string;
    if (!word.startsWith('-') || word === '-') command.url ??= word;
    else if (valued.test(word)) applyOption(command, word, rest[++at] ?? '');
    else if (word === '-G' || word === '--get') command.isQuery = true;
    else if (word === '-I' || word === '--head') command.method = 'HEAD';
  }
  if (command.url === undefined) return [];
  const { method, headers, data, fields, isQuery, auth } = command;
  const added = isQuery && data.length > 0 ? `${command.url.includes('?') ? '&' : '?'}${data.join('&')}` : '';
  const body = isQuery ? undefined : bodyOf(command);
  const usual = body || fields.length > 0 ? 'POST' : 'GET';
  return [
    {
      name: '',
      description: '',
      tags: [],
      method: (method ?? usual).toUpperCase(),
      url: command.url + added,
      headers,
      body,
      auth,
      at: `command ${index + 1}`,
    },
  ];
}

/** `-XPOST` and `--request=POST` are two words each, `-sSL` three. */
function splitOption(word: string): string[] {
  const long = /^(--[a-z0-9-]+)=(.*)$/s.exec(word);
  if (long) return [long[1] as string, long[2] as string];
  if (!/^-[A-Za-z]./s.test(word)) return [word];
  const found: string[] = [];
  for (let at = 1; at < word.length; at++) {
    const option = `-${word[at]}`;
    found.push(option);
    if (!valued.test(option)) continue;
    if (at + 1 < word.length) found.push(word.slice(at + 1));
    break;
  }
  return found;
}

function applyOption(command: Command, option: string, value: string): void {
  if (option === '-X' || option === '--request') command.method = value;
  else if (option === '--url') command.url = value;
  else if (option === '-H' || option === '--header') addHeader(command, value);
  else if (option === '-u' || option === '--user') command.auth = 'basic';
  else if (option === '--oauth2-bearer') command.auth = 'bearer';
  else if (option === '-b' || option === '--cookie') command.headers.push(['Cookie', value]);
  else if (option === '-F' || option.startsWith('--form')) addField(command, value);
  else if (option === '--json') {
    command.isJson = true;
    command.data.push(value);
  } else if (option === '-d' || option.startsWith('--data')) command.data.push(value);
}

function addHeader({ headers }: Command, text: string): void {
  const colon = text.indexOf(':');
  if (colon > 0) headers.push([text.slice(0, colon).trim(), text.slice(colon + 1).trim()]);
}

function addField({ fields }: Command, text: string): void {
  const equals = text.indexOf('=');
  if (equals < 1) return;
  const value = text.slice(equals + 1);
  fields.push({ name: text.slice(0, equals), value: value.replace(/;type=.*$/, ''), isFile: /^[@<]/.test(value) });
}

function bodyOf({ headers, data, fields, isJson }: Command): RequestBody | undefined {
  if (fields.length > 0) return { mediaType: 'multipart/form-data', fields };
  if (data.length === 0) return undefined;
  const given = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const text = data.join('&');
  if (given !== undefined && !/x-www-form-urlencoded/i.test(given)) return { mediaType: given, text };
  if (isJson || /^\s*[{[]/.test(text)) return { mediaType: 'application/json', text };
  const parsed = [...new URLSearchParams(text)].map(([name, value]) => ({ name, value, isFile: false }));
  return { mediaType: 'application/x-www-form-urlencoded', fields: parsed };
}
