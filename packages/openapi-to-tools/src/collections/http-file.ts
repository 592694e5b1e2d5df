import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { collectVariables } from './placeholders.ts';
import { createGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

const verbNames =
  'GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|TRACE|CONNECT|QUERY|PROPFIND|REPORT|COPY|MOVE|LOCK|UNLOCK|GRAPHQL';
/** Matches an optional verb and a URL, a path, or a host. */
const requestLine = new RegExp(String.raw`^(?:(${verbNames})\s+)?((?:https?:\/\/|\{\{|\/|localhost|[\w.-]+[.:]\w).*)$`);
const httpVersion = /\sHTTP\/[\d.]+$/;
const otherProtocolPattern = /^(?:WEBSOCKET|GRPC|RSOCKET|WS|MQTT|SSE|AMQP|EVENTSOURCE)\s+\S/;
const variableLine = /^@([\w.-]{1,100})\s*=\s*(.*)$/;

/** Returns true if a text is a request file for editors (`.http`, `.rest`), or a raw HTTP request. */
export function isHttpFile(text: string): boolean {
  let hasMarker = false;
  for (const line of text.slice(0, 20_000).split(/\r?\n/)) {
    const trimmed = line.trim();
    if (/^###|^(?:#|\/\/)\s*@name\s/.test(trimmed) || variableLine.test(trimmed)) hasMarker = true;
    else if (otherProtocolPattern.test(trimmed)) return true;
    else if (trimmed !== '' && !isComment(trimmed) && !/^<\s*(?:\{%|\S+\.js$)/.test(trimmed)) {
      const [, verb, target = ''] = requestLine.exec(trimmed.replace(httpVersion, '')) ?? [];
      return target !== '' && (verb !== undefined || hasMarker);
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
  #index = 0;
  #scriptCount = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  read(): void {
    let name = '';
    let comments: string[] = [];
    for (; this.#index < this.#lines.length; this.#index++) {
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
        const declaredName = /^@name\s*=?\s*(\S.*)$/.exec(comment)?.[1];
        if (declaredName !== undefined) name = declaredName.trim();
        else if (!comment.startsWith('@')) comments.push(comment);
      } else if (variable !== undefined) this.values.push([variable, value.replace(/^(["'])(.*)\1$/, '$2')]);
      else if (/^[<>]\s*/.test(line)) this.#skipScript(line);
      else if (line !== '') {
        this.#readRequest(line, { name, description: comments.join(' ') });
        name = '';
        comments = [];
      }
    }
    if (this.#scriptCount > 0) {
      const message = `has ${this.#scriptCount} scripts, which are left out: a tool only sends the request`;
      this.findings.push({ at: 'document', message });
    }
  }

  get #line(): string {
    return this.#lines[this.#index] ?? '';
  }

  #readRequest(line: string, metadata: { name: string; description: string }): void {
    const at = `line ${this.#index + 1}`;
    const [, verb = 'GET', target = ''] = requestLine.exec(line.replace(httpVersion, '')) ?? [];
    this.#index++;
    const continuation = this.#readContinuation();
    const headers = this.#readHeaders();
    const body = this.#readBody();
    if (target === '') {
      const message = otherProtocolPattern.test(line)
        ? 'is not an HTTP request; left out'
        : 'is not a request with a URL; left out';
      this.findings.push({ at, message });
      return;
    }
    const hostHeader = headers.find(([name]) => /^host$/i.test(name))?.[1] ?? '';
    const isGraphql =
      verb === 'GRAPHQL' || headers.some(([name, value]) => /^x-request-type$/i.test(name) && /graphql/i.test(value));
    const contentType = headers.find(([name]) => /^content-type$/i.test(name))?.[1];
    this.requests.push({
      ...metadata,
      method: isGraphql && verb !== 'GET' ? 'POST' : verb,
      url: (target.startsWith('/') && hostHeader !== '' ? `http://${hostHeader}` : '') + target.trim() + continuation,
      headers: headers.filter(([name]) => !/^x-request-type$/i.test(name)),
      body: isGraphql ? toGraphqlBody(body) : toBody(body, contentType),
      at,
    });
  }

  /** Reads lines that continue the URL. They begin with white space, and a query with `?` or `&`. */
  #readContinuation(): string {
    let continuation = '';
    for (; /^\s+\S/.test(this.#line) && !isComment(this.#line.trim()); this.#index++) continuation += this.#line.trim();
    return continuation.replace(httpVersion, '').trim();
  }

  #readHeaders(): [string, string][] {
    const headers: [string, string][] = [];
    for (; this.#index < this.#lines.length; this.#index++) {
      const line = this.#line.trim();
      const colon = line.indexOf(':');
      if (line === '' || line.startsWith('###') || /^[<>]/.test(line)) break;
      if (!isComment(line) && colon > 0) headers.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()]);
    }
    return headers;
  }

  /** Reads lines up to the next request, a response handler script, or the file that the response is saved to. */
  #readBody(): string {
    const lines: string[] = [];
    for (; this.#index < this.#lines.length && !/^###/.test(this.#line); this.#index++) {
      const line = this.#line;
      if (/^(?:>\s*\{%|<\s*\{%|>\s*\S+\.js\s*$|>>!?\s+\S|<>\s+\S)/.test(line)) this.#skipScript(line.trim());
      else lines.push(line);
    }
    // Comments after a body belong to the next request.
    while (/^\s*(?:#|\/\/|$)/.test(lines.at(-1) ?? 'a')) lines.pop();
    // Steps back, so that the caller's loop reaches the separator `###`, which begins the next request.
    this.#index--;
    return lines.join('\n').trim();
  }

  #skipScript(line: string): void {
    if (/^(?:>>|<>)/.test(line)) return;
    this.#scriptCount++;
    if (!line.includes('{%')) return;
    while (!this.#line.includes('%}') && this.#index < this.#lines.length - 1) this.#index++;
  }
}

function toBody(text: string, contentType: string | undefined): RequestBody | undefined {
  const file = /^<@?(?:\w+)?\s+(\S.*)$/.exec(text)?.[1];
  if (file === undefined) return readBodyText(contentType, text);
  const mediaType = contentType ?? (/\.json$/i.test(file) ? 'application/json' : 'application/octet-stream');
  // The content of a JSON file is unknown, so the body may be any value.
  return { mediaType, text: /json/i.test(mediaType) ? 'null' : '' };
}

/** Reads a GraphQL query and, after an empty line, its variables. */
function toGraphqlBody(text: string): RequestBody {
  const sections = text.split(/\n[ \t]*\n/);
  const variablesIndex = sections.findIndex((section, index) => index > 0 && section.trimStart().startsWith('{'));
  if (variablesIndex < 0) return createGraphqlBody(text, '');
  return createGraphqlBody(sections.slice(0, variablesIndex).join('\n\n'), sections.slice(variablesIndex).join('\n'));
}
