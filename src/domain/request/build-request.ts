import { plainFailure, type ToolFailure } from '../../errors.ts';
import { fillPlaceholders, fillPlaceholdersIn } from '../http/placeholders.ts';
import { checked, renderUrl } from '../http/url-template.ts';
import { hasControlCharacter, mostHeaderLength, type WireText, wireText } from '../http/values.ts';
import { argumentHeaders, headerText } from './argument-headers.ts';
import { contentOf } from './body.ts';
import { addPairs, encodedPairs, isSeparated, joinedText, type Pairs, pairsOf } from './pairs.ts';
import type { RequestTemplate } from './request-template.ts';
import { type Arguments, own, type SentArgument } from './sent-argument.ts';
import { addCredentials, type Tokens } from './sent-credentials.ts';
import type { UpstreamRequest } from './upstream-request.ts';

/** The credentials of a call. `secret` throws when a value is missing. */
export type Credentials = { tokens: Tokens; secret: (name: string) => string };

/**
 * Builds the request of a call (specification 4.3). Pure: nothing is sent.
 * @throws ToolFailure invalid_arguments when an argument cannot go where it belongs
 * @throws ToolFailure secret_missing from `credentials.secret`
 */
export function buildRequest(template: RequestTemplate, given: Arguments, credentials: Credentials): UpstreamRequest {
  const args = withConstants(template, given, credentials);
  const { path, query } = renderUrl(template.url, {
    argument: (name) => templateText(template, name, own(args, name)),
    secret: credentials.secret,
  });
  // The configuration was checked when it was stored; the values of its secrets were not.
  const headers = template.fixedHeaders.slice();
  for (const { name, value } of template.filledHeaders) {
    const text = fillPlaceholders(value, credentials.secret);
    if (text.length > mostHeaderLength) throw tooLong(name);
    headers.push(name, headerText(name, text));
  }
  let pairs: Pairs | undefined;
  for (const argument of template.arguments) {
    const value = own(args, argument.name);
    if (value === undefined) continue;
    if (argument.location === 'header') headers.push(...argumentHeaders(argument, value));
    else {
      pairs ??= pairsOf('a URL', template.arrayFormat);
      addPairs(pairs, argument, value);
    }
  }
  if (pairs) query.push(...encodedPairs(pairs));
  const { body, contentType } = contentOf(template.body, args, credentials.secret);
  if (contentType !== undefined && template.body.contentType === undefined) headers.push('Content-Type', contentType);
  if (template.credentials.length > 0) addCredentials(template.credentials, credentials.tokens, headers, query);
  const search = query.length > 0 ? `?${query.join('&')}` : '';
  return { method: template.method, origin: template.url.origin, path: checked(path + search), headers, body };
}

function tooLong(name: string): ToolFailure {
  const message = `the value for the header ${name} has more than ${mostHeaderLength} characters; its configuration repeats {{NAME}} too often`;
  return plainFailure('invalid_arguments', message);
}

function withConstants(
  { constants, hasSecrets }: RequestTemplate,
  given: Arguments,
  { secret }: Credentials,
): Arguments {
  if (constants === undefined) return given;
  return { ...given, ...(hasSecrets ? (fillPlaceholdersIn(constants, secret) as Arguments) : constants) };
}

/** Text of an argument in a template; control characters are refused in a path or a filter. */
function templateText(template: RequestTemplate, name: string, value: unknown): WireText | undefined {
  const styled = template.styledTokens?.get(name);
  const text = value === undefined || !styled ? wireText(name, value) : styledToken(styled, value);
  const hasControl = typeof text === 'object' ? text.some(hasControlCharacter) : hasControlCharacter(text ?? '');
  if (hasControl) throw plainFailure('invalid_arguments', `${name}: must not hold control characters`);
  return text;
}

function styledToken(argument: SentArgument, value: unknown): WireText | undefined {
  if (argument.style === 'json') return value === null ? undefined : JSON.stringify(value);
  return isSeparated(argument.style) ? joinedText(argument, value, true) : wireText(argument.name, value);
}
