import type { ApiDescription } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { parseUrlencoded } from './form-text.ts';
import { type BodyField, type RequestBody, readBodyText } from './request-bodies.ts';

/** Returns true if a text begins with a curl command, possibly after comments, a prompt, or preceding script lines. */
export function isCurl(text: string): boolean {
  const start = text.slice(0, 10_000);
  return (
    /^(?:\s*(?:#[^\n]*\n|\$\s))*\s*curl(?:\.exe)?\s/.test(start) ||
    /^(?:\s*(?:#[^\n]*|(?:export\s+)?\w+=[^\n]*|(?:set|echo|cd|source)\s[^\n]*)\n)+\s*(?:\$\s+)?curl(?:\.exe)?\s/.test(
      start,
    )
  );
}

/** Reads one or more curl commands. */
export function readCurl(text: string): ApiDescription {
  const allCommands = isWindowsCommand(text) ? splitWindowsCommands(text) : splitShellCommands(text);
  const commands = allCommands.filter(([program]) => /(?:^|\/)curl(?:\.exe)?$/.test(program ?? ''));
  const requests = commands.flatMap((words, index) =>
    splitAtNext(words.slice(1)).flatMap((words) => toRequests(words, index)),
  );
  return describeRequests(requests, {
    format: 'curl',
    version: '',
    title: findHostTitle(requests, 'curl'),
    description: '',
  });
}

/** Options that take a value, including options that are ignored together with their value. */
const valueOption =
  /^(?:-[XHdFuAbeoTwmxKcECrtyYzPQDU]|--(?:request|header|data(?:-raw|-binary|-ascii|-urlencode)?|json|form(?:-string)?|user|user-agent|cookie|referer|output|upload-file|write-out|max-time|proxy|config|cookie-jar|cert|key|cacert|connect-timeout|retry|resolve|url|url-query|oauth2-bearer|aws-sigv4|ciphers|interface|limit-rate|max-redirs|noproxy|range|tlsv?[\d.]*))$/;

const formType = 'application/x-www-form-urlencoded';

type Command = {
  method: string | undefined;
  urls: string[];
  /** Pairs that are added to the query. */
  query: string[];
  headers: [string, string][];
  data: string[];
  fields: BodyField[];
  isQuery: boolean;
  isJson: boolean;
  /** Name of a file that is the body, and its default media type. */
  file: string | undefined;
  fileType: string;
  auth: DescribedRequest['auth'];
};

/** Splits words at `--next`, which begins a separate request. */
function splitAtNext(words: readonly string[]): string[][] {
  const commands: string[][] = [[]];
  for (const word of words) {
    if (word === '--next' || word === '-:') commands.push([]);
    else commands.at(-1)?.push(word);
  }
  return commands;
}

/** Returns one request per URL of a command. */
function toRequests(words: readonly string[], index: number): DescribedRequest[] {
  const command: Command = {
    method: undefined,
    urls: [],
    query: [],
    headers: [],
    data: [],
    fields: [],
    isQuery: false,
    isJson: false,
    file: undefined,
    fileType: formType,
    auth: undefined,
  };
  const options = words.flatMap(splitOption);
  for (let index = 0; index < options.length; index++) {
    const word = options[index] as string;
    // An extra word may be the value of an unknown option.
    if (!word.startsWith('-') || word === '-') {
      if (command.urls.length === 0 || /^https?:\/\//i.test(word)) command.urls.push(word);
    } else if (valueOption.test(word)) applyOption(command, word, options[++index] ?? '');
    else if (word === '-G' || word === '--get') command.isQuery = true;
    else if (word === '-I' || word === '--head') command.method = 'HEAD';
  }
  const { method, headers, data, fields, isQuery, auth } = command;
  const extraQuery = [...command.query, ...(isQuery ? data : [])].join('&');
  const body = isQuery ? undefined : readBody(command);
  const defaultMethod = body || fields.length > 0 ? 'POST' : 'GET';
  return command.urls.map((url) => ({
    method: (method ?? defaultMethod).toUpperCase(),
    url: extraQuery === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${extraQuery}`,
    headers,
    body,
    auth,
    at: `command ${index + 1}`,
  }));
}

/** Splits a word into options and values: `-XPOST` becomes `-X` and `POST`, `-sSL` becomes `-s`, `-S`, and `-L`. */
function splitOption(word: string): string[] {
  const longOption = /^(--[a-z0-9-]+)=(.*)$/s.exec(word);
  if (longOption) return [longOption[1] as string, longOption[2] as string];
  if (!/^-[A-Za-z]./s.test(word)) return [word];
  const options: string[] = [];
  for (let index = 1; index < word.length; index++) {
    const option = `-${word[index]}`;
    options.push(option);
    if (!valueOption.test(option)) continue;
    if (index + 1 < word.length) options.push(word.slice(index + 1));
    break;
  }
  return options;
}

function applyOption(command: Command, option: string, value: string): void {
  if (option === '-X' || option === '--request') command.method = value;
  else if (option === '--url') command.urls.push(value);
  else if (option === '--url-query') command.query.push(encodePair(value));
  else if (option === '-T' || option === '--upload-file') {
    command.method ??= 'PUT';
    command.file = value;
    command.fileType = 'application/octet-stream';
  } else if (option === '-H' || option === '--header') addHeader(command, value);
  else if (option === '-A' || option === '--user-agent') command.headers.push(['User-Agent', value]);
  else if (option === '-e' || option === '--referer') command.headers.push(['Referer', value]);
  else if (option === '-u' || option === '--user') command.auth = 'basic';
  else if (option === '--oauth2-bearer') command.auth = 'bearer';
  else if (option === '-b' || option === '--cookie') command.headers.push(['Cookie', value]);
  else if (option === '-F' || option.startsWith('--form')) addField(command, value);
  else if (option === '--data-urlencode') command.data.push(encodePair(value));
  else if (option === '-d' || option === '--json' || option.startsWith('--data')) {
    command.isJson ||= option === '--json';
    if (value.startsWith('@') && option !== '--data-raw') command.file = value;
    else command.data.push(value);
  }
}

/** Encodes the content of `name=content`, like `--data-urlencode`. For `name@file`, the value is empty. */
function encodePair(text: string): string {
  const [, name = '', mark, content = ''] = /^([^=@]*)([=@]?)(.*)$/s.exec(text) ?? [];
  if (mark === '') return encodeURIComponent(name.toWellFormed());
  const value = mark === '=' ? encodeURIComponent(content.toWellFormed()) : '';
  return name === '' ? value : `${name}=${value}`;
}

function addHeader({ headers }: Command, text: string): void {
  const colon = text.indexOf(':');
  if (colon > 0) headers.push([text.slice(0, colon).trim(), text.slice(colon + 1).trim()]);
}

function addField({ fields }: Command, text: string): void {
  const equals = text.indexOf('=');
  if (equals < 1) return;
  const value = text.slice(equals + 1);
  const [, content = '', mediaType] =
    /^(.*?)(?:;type=([^;]*))?(?:;(?:filename|encoder|headers)=.*)?$/s.exec(value) ?? [];
  const isFile = /^[@<]/.test(value);
  fields.push({ name: text.slice(0, equals), value: content, isFile, ...(mediaType !== undefined && { mediaType }) });
}

function readBody({ headers, data, fields, isJson, file, fileType }: Command): RequestBody | undefined {
  const contentType = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  if (fields.length > 0) return { mediaType: 'multipart/form-data', fields };
  if (file !== undefined)
    return createFileBody(contentType ?? (isJson || /\.json$/i.test(file) ? 'application/json' : fileType));
  if (data.length === 0) return undefined;
  const text = data.join('&');
  if (contentType !== undefined && !/x-www-form-urlencoded/i.test(contentType)) return readBodyText(contentType, text);
  if (isJson || /^\s*[{[]/.test(text)) return { mediaType: 'application/json', text };
  return { mediaType: formType, fields: parseUrlencoded(text) };
}

/** Returns the body for a file: the command only names the file, so its content is unknown. */
function createFileBody(mediaType: string): RequestBody {
  if (mediaType === formType) return { mediaType: formType, fields: [] };
  return { mediaType, text: /json/i.test(mediaType) ? 'null' : '' };
}

/**
 * Splits commands of a POSIX shell into words. Handles all three kinds of quotes, escapes, continued lines, and
 * comments. A variable (`$NAME`, `${NAME}`) becomes `{{NAME}}`; nothing else is expanded.
 */
function splitShellCommands(text: string): string[][] {
  const commands: string[][] = [];
  let words: string[] = [];
  let word: string | undefined;
  const finishWord = () => {
    if (word !== undefined) words.push(word);
    word = undefined;
  };
  const finishCommand = () => {
    finishWord();
    // Removes a prompt before the command.
    if (words[0] === '$') words.shift();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  for (let index = 0; index < text.length; index++) {
    const character = text[index] as string;
    const quoted = readQuoted(text, index) ?? readVariable(text, index);
    if (quoted) {
      word = (word ?? '') + quoted.value;
      index = quoted.end;
    } else if (character === '\\') {
      const lineEnd = /^\r?\n/.exec(text.slice(index + 1, index + 3))?.[0];
      if (lineEnd !== undefined) index += lineEnd.length;
      else word = (word ?? '') + (text[++index] ?? '');
    } else if (
      /[\n;|&]/.test(character) &&
      (word === undefined || character !== '&' || /\s/.test(text[index + 1] ?? ' '))
    )
      finishCommand();
    else if (/\s/.test(character)) finishWord();
    else if (character === '#' && word === undefined) index = findLineEnd(text, index) - 1;
    else word = (word ?? '') + character;
  }
  finishCommand();
  return commands;
}

function findLineEnd(text: string, from: number): number {
  const lineEnd = text.indexOf('\n', from);
  return lineEnd < 0 ? text.length : lineEnd;
}

/** Reads a variable at a position. Returns it as a collection placeholder, with the position of its last character. */
function readVariable(text: string, start: number): { value: string; end: number } | undefined {
  if (text[start] !== '$') return undefined;
  const match = /^\$(?:([A-Za-z_]\w{0,63})|\{([A-Za-z_]\w{0,63})(?:[:#%/?+=-][^{}\n]{0,200})?\})/.exec(
    text.slice(start, start + 300),
  );
  return match ? { value: `{{${match[1] ?? match[2]}}}`, end: start + match[0].length - 1 } : undefined;
}

/** Reads a quoted text at a position. Returns its value and the position of its last character. */
function readQuoted(text: string, start: number): { value: string; end: number } | undefined {
  if (text[start] === "'") {
    const quoteEnd = text.indexOf("'", start + 1);
    return quoteEnd < 0 ? undefined : { value: text.slice(start + 1, quoteEnd), end: quoteEnd };
  }
  const isAnsi = text.startsWith("$'", start);
  if (text[start] !== '"' && !isAnsi) return undefined;
  const quote = isAnsi ? "'" : '"';
  let value = '';
  for (let from = start + (isAnsi ? 2 : 1); from < text.length; from++) {
    const character = text[from] as string;
    if (character === quote) return { value, end: from };
    const variable = isAnsi ? undefined : readVariable(text, from);
    if (variable) {
      value += variable.value;
      from = variable.end;
    } else if (character !== '\\') value += character;
    else if (isAnsi) {
      const decodedEscape = decodeAnsiEscape(text.slice(from + 1, from + 11));
      value += decodedEscape.value;
      from += decodedEscape.length;
    } else {
      const nextCharacter = text[++from] ?? '';
      value += /["\\$`]/.test(nextCharacter) ? nextCharacter : nextCharacter === '\n' ? '' : `\\${nextCharacter}`;
    }
  }
  return undefined;
}

const namedEscapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  b: '\b',
  f: '\f',
  v: '\v',
  e: '\u001b',
};

/** Decodes an escape of `$'…'`, without its backslash. */
function decodeAnsiEscape(text: string): { value: string; length: number } {
  const match = /^(?:x([0-9a-f]{1,2})|u([0-9a-f]{1,4})|U([0-9a-f]{1,8}))/i.exec(text);
  const hex = match?.[1] ?? match?.[2] ?? match?.[3];
  if (match && hex !== undefined) {
    const codePoint = Number.parseInt(hex, 16);
    return { value: codePoint > 0x10ffff ? '' : String.fromCodePoint(codePoint), length: match[0].length };
  }
  const character = text[0] ?? '';
  return { value: Object.hasOwn(namedEscapes, character) ? (namedEscapes[character] as string) : character, length: 1 };
}

/** Returns true if a text escapes quotes or line ends with carets, which only the Windows shell does. */
function isWindowsCommand(text: string): boolean {
  return /(?:^|\s)\^(?:"|\r?\n)/.test(text);
}

/** Splits commands of the Windows shell (`cmd`), as copied by browsers ("Copy as cURL (cmd)"), into words. */
function splitWindowsCommands(text: string): string[][] {
  return splitCommandLines(text.replaceAll('\r\n', '\n'))
    .map(splitWindowsWords)
    .filter((words) => words.length > 0);
}

/**
 * Returns the command lines without carets. A caret removes the special meaning of the next character, except between
 * quotes, where it is literal. A caret at the end of a line joins the next line, whose first character also has no
 * special meaning.
 */
function splitCommandLines(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  let isQuoted = false;
  for (let index = 0; index < text.length; index++) {
    const character = text[index] as string;
    if (character === '^' && !isQuoted) {
      if (text[index + 1] === '\n') index++;
      line += text[++index] ?? '';
    } else if (character === '\n' || (/[&|]/.test(character) && !isQuoted)) {
      lines.push(line);
      line = '';
      isQuoted = false;
    } else {
      if (character === '"') isQuoted = !isQuoted;
      line += character;
    }
  }
  return [...lines, line];
}

const maxBackslashes = 100;

/** Splits a line into words like Windows programs do: a backslash escapes only quotes, and two quotes are one. */
function splitWindowsWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let isQuoted = false;
  for (let index = 0; index < line.length; index++) {
    const character = line[index] as string;
    const backslashes = /^\\+(?=")/.exec(line.slice(index, index + maxBackslashes))?.[0].length ?? 0;
    if (backslashes > 0) {
      const isEscaped = backslashes % 2 === 1;
      word = (word ?? '') + '\\'.repeat(Math.floor(backslashes / 2)) + (isEscaped ? '"' : '');
      index += backslashes - (isEscaped ? 0 : 1);
    } else if (character === '"' && isQuoted && line[index + 1] === '"') {
      word = `${word ?? ''}"`;
      index++;
    } else if (character === '"') {
      isQuoted = !isQuoted;
      word ??= '';
    } else if (/\s/.test(character) && !isQuoted) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + character;
  }
  return word === undefined ? words : [...words, word];
}
