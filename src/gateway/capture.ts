import { isUtf8 } from 'node:buffer';
import { isRawNumber } from '../domain/json.ts';
import type { UpstreamRequest } from '../domain/request-template.ts';
import type { Answer } from '../outbound/exchange.ts';
import type { Capture, CapturedResponse } from '../store/captures.ts';
import type { Call } from './call.ts';
import type { HostedServer } from './hosted-server.ts';
import { findPreview } from './preview-call.ts';
import { cut, redact, redactedStart } from './redact.ts';

const maxBodyBytes = 8 * 1024;
const maxArgumentsBytes = 32 * 1024;
const maxFieldBytes = 1024;
/** Of headers and of the fields of a form. */
const maxFields = 100;

/** Whether the owner of a server wants to see what a call that begins now sends and gets. */
export function isCapturing(server: HostedServer, now: number): boolean {
  return server.captureUntil !== undefined && now < server.captureUntil;
}

/** The JSON text of a `Capture`; undefined when it could not be made, as a call must not fail because it is looked at. */
export function captureOf(call: Call, onUnexpected: (error: unknown, requestId: string) => void): string | undefined {
  try {
    return captureText(call);
  } catch (error) {
    onUnexpected(error, call.asked.requestId);
    return undefined;
  }
}

/**
 * The request is built once more with masked credentials, so none can be in it; from all the rest the credentials that
 * the call used and the secrets of the server are redacted.
 */
function captureText({ server, tool, asked, answer, ...call }: Call): string {
  const sensitive = [...call.sensitive, ...[...server.secrets.values()].map((secret) => secret.value)];
  const argumentsBytes = Buffer.byteLength(JSON.stringify(asked.args));
  const request = findPreview(tool, call.args);
  const capture: Capture = {
    ...(argumentsBytes <= maxArgumentsBytes && { arguments: asked.args }),
    argumentsBytes,
    ...(request && { request: shortened(request) }),
    ...(answer && { response: captured(answer, sensitive) }),
  };
  return JSON.stringify(capture, (_name, value: unknown) => cleaned(value, sensitive));
}

function shortened(request: UpstreamRequest): UpstreamRequest {
  const { path, body } = request;
  return {
    ...request,
    path: cut(path, maxBodyBytes),
    body:
      typeof body === 'object'
        ? { fields: body.fields.slice(0, maxFields).map(([name, value]) => [name, cut(value, maxFieldBytes)]) }
        : body && cut(body, maxBodyBytes),
  };
}

function captured(answer: Answer, sensitive: readonly string[]): CapturedResponse {
  const headers = Object.entries(answer.headers)
    .filter(([name]) => name !== 'set-cookie')
    .flatMap(([name, value]) => [value ?? []].flat().map((line): [string, string] => [name, cut(line, maxFieldBytes)]));
  return {
    status: answer.status,
    headers: headers.slice(0, maxFields),
    ...(isUtf8(answer.body) && { body: redactedStart(answer.body, maxBodyBytes, sensitive) }),
    bodyBytes: answer.body.length,
  };
}

/** Any text of a capture without the credentials of its call; an argument may be one, also as a number. */
function cleaned(value: unknown, sensitive: readonly string[]): unknown {
  if (typeof value === 'string') return redact(value, sensitive);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const clean = redact(digits, sensitive);
  return clean === digits ? value : clean;
}
