import { isUtf8 } from 'node:buffer';
import type { Redactor } from '../../domain/credentials/redactor.ts';
import { normalised } from '../../domain/normalised.ts';

/** Longest name of a file that is passed on, in characters, and the longest extension that is kept when it is cut. */
const longestName = 100;
const longestExtension = 12;

/** One parameter of a header: `; name=value` or `; name="quoted value"` (RFC 9110, 5.6.6). */
const parameter = /\s*;\s*(?:([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"]*)))?/gy;

/**
 * The name of a file in a Content-Disposition (RFC 6266), as one visible name without a path; undefined without one.
 * `filename*` (RFC 8187) counts before `filename`. Credentials are removed by `redact`.
 */
export function fileNameIn(disposition: string, redact?: Redactor): string | undefined {
  const parameters = disposition.slice(/^[^;]*/.exec(disposition)?.[0].length);
  const found = new Map<string, string>();
  for (const [, name, quoted, plain] of parameters.matchAll(parameter)) {
    const value = quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain?.trim();
    if (name !== undefined && value !== undefined) found.set(name.toLowerCase(), value);
  }
  const extended = safeName(decodedValue(found.get('filename*') ?? ''), redact);
  return extended ?? safeName(utf8Of(found.get('filename') ?? ''), redact);
}

/** `UTF-8''%e2%82%ac.txt`; empty when it is not of that form (RFC 8187, 3.2.1). */
function decodedValue(text: string): string {
  const [, charset = '', value = ''] = /^([\w-]*)'[\w-]*'(.*)$/s.exec(text) ?? [];
  const bytes = Buffer.from(
    value.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  if (charset.toLowerCase() === 'utf-8') return isUtf8(bytes) ? bytes.toString('utf8') : '';
  return charset.toLowerCase() === 'iso-8859-1' ? bytes.toString('latin1') : '';
}

/** Headers arrive as latin-1; upstreams that write other letters into them mean UTF-8. */
function utf8Of(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

/** A name that is safe to show and to save: no path, no control, bidirectional or invisible characters, bounded. */
function safeName(text: string, redact: Redactor | undefined): string | undefined {
  const visible = text.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\ufffd]|\p{Variation_Selector}/gu, '');
  // Before the name is taken apart: a credential may have a slash in it.
  const clean = redact ? redact.text(visible) : visible;
  const bare = (clean.split(/[/\\]/).at(-1) ?? '')
    .replaceAll(/[<>:"|?*]/g, '_')
    .replaceAll(/\s+/gu, ' ')
    .replaceAll(/^[. ]+|(?<![. ])[. ]+$/g, '');
  const name = normalised(bare, 'NFC');
  return name === '' ? undefined : shortened(name);
}

function shortened(name: string): string {
  const letters = [...name];
  if (letters.length <= longestName) return name;
  const dot = letters.lastIndexOf('.');
  const extension = dot > 0 && letters.length - dot <= longestExtension ? letters.slice(dot) : [];
  return [...letters.slice(0, longestName - extension.length), ...extension].join('');
}
