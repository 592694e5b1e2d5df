import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { collectVariables } from './placeholders.ts';
import { makeGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

const verbs =
  'GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|TRACE|CONNECT|QUERY|PROPFIND|REPORT|COPY|MOVE|LOCK|UNLOCK|GRAPHQL';
const requestLine = new RegExp(String.raw`^(?:(${verbs})\s+)?((?:https?:\/\/|\{\{|\/|localhost|[\w.-]+[.:]\w).*)$`);
const version = /\sHTTP\/[\d.]+$/;
const otherProtocol = /^(?:WEBSOCKET|GRPC|RSOCKET|WS|MQTT|SSE|AMQP|EVENTSOURCE)\s+\S/;
const variableLine = /^@([\w.-]{1,100})\s*=\s*(.*)$/;

/** Returns true if a text is a request file for editors (`.http`, `.rest`), or a raw HTTP request. */
export function isHttpFile(text: string): boolean {
  let isMarked = false;
  for (const line of text.slice(0, 20_000).split(/\r?\n/)) {
    const trimmed = line.trim();
    if (/^###|^(?:#|\/\/)\s*@name\s/.test(trimmed) || variableLine.test(trimmed)) isMarked = true;
    else if (otherProtocol.test(trimmed)) return true;
    else if (trimmed !== '' && !isComment(trimmed) && !/^<\s*(?:\{%|\S+\.js$)/.test(trimmed)) {
      const [, verb, target = ''] = requestLine.exec(trimmed.replace(version, '')) ?? [];
      return target !== '' && (verb !== undefined || isMarked);
    }
  }
  return false;
}

function isComment(line: string): boolean {
  return /^#|^\/\//.test(line);
}

/** Reads a request file of REST Client (VS Code) or the JetBrains HTTP client. */
export function readHttpFile(text: string): ApiDescription {
  const reader = new HttpFileReader(text.replace(/^\ufeff/, '').split(/\r?\n/));
  reader.read();
  const { requests, findings } = reader;
  const variables = collectVariables(reader.values);
  const title = findHostTitle(requests, 'Requests', variables);
  const source = { format: 'HTTP file' as const, version: '', title, description: '', variables };
  return describeRequests(requests, source, findings);
}

class HttpFileReader {
  readonly requests: DescribedRequest[] = [];
  readonly findings: Finding[] = [];
  readonly values: [name: string, value: string][] = [];
  readonly #lines: readonly string[];
  #at = 0;
  #scripts = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  read(): void {
    let name = '';
    let comments: string[] = [];
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#line.trim();
      const [, variable, value = ''] = variableLine.exec(line) ?? [];
      if (/^###/.test(line)) {
        // Removes numbers that people put before request names.
        name = line
          .replace(/^#+\s*(?:\d+[.):]\s+)?/, '')
          .replace(/(?<!#)#+$/, '')
          .trim();
        comments = [];
      } else if (isComment(line)) {
        const comment = line.replace(/^(?:#+|\/\/+)\s*/, '');
        const named = /^@name\s*=?\s*(\S.*)$/.exec(comment)?.[1];
        if (named !== undefined) name = named.trim();
        else if (!comment.startsWith('@')) comments.push(comment);
      } else if (variable !== undefined) this.values.push([variable, value.replace(/^(["'])(.*)\1$/, '$2')]);
      else if (/^[<>]\s*/.test(line)) this.#skipScript(line);
      else if (line !== '') {
        this.#request(line, { name, description: comments.join(' ') });
        name = '';
        comments = [];
      }
    }
    if (this.#scripts > 0) {
      const message = `has ${this.#scripts} scripts, which are left out: a tool only sends the request`;
      this.findings.push({ at: 'document', message });
    }
  }

  get #line(): string {
    return this.#lines[this.#at] ?? '';
  }

  #request(line: string, about: { name: string; description: string }): void {
    const at = `line ${this.#at + 1}`;
    const [, verb = 'GET', target = ''] = requestLine.exec(line.replace(version, '')) ?? [];
    this.#at++;
    const more = this.#continued();
    const headers = this.#headers();
    const body = this.#body();
    if (target === '') {
      const message = otherProtocol.test(line)
        ? 'is not an HTTP request; left out'
        : 'is not a request with a URL; left out';
      this.findings.push({ at, message });
      return;
    }
    const host = headers.find(([name]) => /^host$/i.test(name))?.[1] ?? '';
    const isGraphql =
      verb === 'GRAPHQL' || headers.some(([name, value]) => /^x-request-type$/i.test(name) && /graphql/i.test(value));
    const given = headers.find(([name]) => /^content-type$/i.test(name))?.[1];
    this.requests.push({
      ...about,
      method: isGraphql && verb !== 'GET' ? 'POST' : verb,
      url: (target.startsWith('/') && host !== '' ? `http://${host}` : '') + target.trim() + more,
      headers: headers.filter(([name]) => !/^x-request-type$/i.test(name)),
      body: isGraphql ? graphqlOf(body) : bodyOf(body, given),
      at,
    });
  }

  /** Reads lines that continue the URL. They begin with white space, and a query with `?` or `&`. */
  #continued(): string {
    let more = '';
    for (; /^\s+\S/.test(this.#line) && !isComment(this.#line.trim()); this.#at++) more += this.#line.trim();
    return more.replace(version, '').trim();
  }

  #headers(): [string, string][] {
    const found: [string, string][] = [];
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#line.trim();
      const colon = line.indexOf(':');
      if (line === '' || line.startsWith('###') || /^[<>]/.test(line)) break;
      if (!isComment(line) && colon > 0) found.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
    }
    return found;
  }

  /** Reads lines up to the next request, a response handler script, or the file that the response is saved to. */
  #body(): string {
    const lines: string[] = [];
    for (; this.#at < this.#lines.length && !/^###/.test(this.#line); this.#at++) {
      const line = this.#line;
      if (/^(?:>\s*\{%|<\s*\{%|>\s*\S+\.js\s*$|>>!?\s+\S|<>\s+\S)/.test(line)) this.#skipScript(line.trim());
      else lines.push(line);
    }
    // Comments after a body belong to the next request.
    while (/^\s*(?:#|\/\/|$)/.test(lines.at(-1) ?? 'a')) lines.pop();
    // The separator begins the next request.
    this.#at--;
    return lines.join('\n').trim();
  }

  #skipScript(line: string): void {
    if (/^(?:>>|<>)/.test(line)) return;
    this.#scripts++;
    if (!line.includes('{%')) return;
    while (!this.#line.includes('%}') && this.#at < this.#lines.length - 1) this.#at++;
  }
}

function bodyOf(text: string, given: string | undefined): RequestBody | undefined {
  const file = /^<@?(?:\w+)?\s+(\S.*)$/.exec(text)?.[1];
  if (file === undefined) return readBodyText(given, text);
  const mediaType = given ?? (/\.json$/i.test(file) ? 'application/json' : 'application/octet-stream');
  // The content of a JSON file is unknown, so the body may be any value.
  return { mediaType, text: /json/i.test(mediaType) ? 'null' : '' };
}

/** Reads a GraphQL query and, after an empty line, its variables. */
function graphqlOf(text: string): RequestBody {
  const parts = text.split(/\n[ \t]*\n/);
  const found = parts.findIndex((part, index) => index > 0 && part.trimStart().startsWith('{'));
  if (found < 0) return makeGraphqlBody(text, '');
  return makeGraphqlBody(parts.slice(0, found).join('\n\n'), parts.slice(found).join('\n'));
}
