import { recordableFailure } from '@toolhost/errors/errors';
import { isDeclaredOrigin } from '../oauth-values.ts';
import { isHostLabel, parseOriginTemplate } from './origin-template.ts';
import { interpolatePlaceholders } from './placeholders.ts';
import { percentEncode } from './values.ts';

/** Returns the value of a person as one label of a host. @throws ToolFailure invalid_arguments, without the value */
export function toHostLabel(name: string, value: string): string {
  if (isHostLabel(value)) return value.toLowerCase();
  throw recordableFailure(
    'invalid_arguments',
    `the value of ${name} cannot be part of a host; allowed: 1 to 63 letters, digits, and inner hyphens. Log in again to change it.`,
  );
}

/**
 * Renders an origin with the value of a person. `hosts` are the declared hosts of a whole origin.
 * @throws ToolFailure invalid_arguments, without the value
 */
export function renderOrigin(
  origin: string,
  { name, value, hosts = [] }: { name: string; value: string; hosts?: readonly string[] | undefined },
): string {
  const written = `{{${name}}}`;
  if (origin !== written) return origin.replace(written, () => toHostLabel(name, value));
  if (isDeclaredOrigin(value, hosts)) return value;
  throw recordableFailure(
    'invalid_arguments',
    `the value of ${name} is not an https origin of a host that the server declares. Log in again to change it.`,
  );
}

/**
 * Renders a valid URL of the provider with the values of a person: a label of the host is checked, and every other
 * value is percent-encoded. @throws ToolFailure invalid_arguments, without the value
 */
export function renderUrlValues(url: string, getValue: (name: string) => string): string {
  const template = parseOriginTemplate(url);
  const { name = '', length = 0 } = template ?? {};
  const origin = template ? renderOrigin(template.origin, { name, value: getValue(name) }) : '';
  const [target = '', ...query] = url.slice(length).split('?');
  const render = (text: string) => interpolatePlaceholders(text, (inner) => percentEncode(getValue(inner)));
  const path = target.split('/').map((segment) => checkSegment(segment, render(segment)));
  return origin + [path.join('/'), ...query.map(render)].join('?');
}

/** Rejects a path segment that the value of a person removes or turns into a dot segment. */
function checkSegment(written: string, rendered: string): string {
  if (written === rendered || !/^(?:\.|%2e){0,2}$/i.test(rendered)) return rendered;
  throw recordableFailure(
    'invalid_arguments',
    'the value of a person must not make an empty, "." or ".." segment of a URL. Log in again to change it.',
  );
}
