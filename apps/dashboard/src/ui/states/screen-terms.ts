/**
 * Texts of the service also address agents, API clients, and operators. This module rewrites those that a form shows,
 * because a person in front of it knows neither the operations nor the REST API.
 */
const replacements: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [
    /^.*; the operator can allow it with EGRESS_ALLOW=(\S+?)$/s,
    'Toolhost may not call $1, because it is not a public https address. To allow it, start the service with EGRESS_ALLOW=$1',
  ],
  [/^found .*; allowed: at most (\d+) characters$/s, 'Use at most $1 characters'],
  [/^(?:found "";|required;) allowed: .*$/s, 'Enter a value'],
  [
    /^found .*; allowed: 3 to 63 lowercase letters and digits, with single hyphens between them$/s,
    'Use 3 to 63 lowercase letters and digits, with single hyphens between them, such as my-server',
  ],
  [/; change that server with updateMcpServer \(.*\), or choose another slug$/, '; choose another slug'],
  [
    /; restore that server with restoreMcpServer \(.*\), or choose another slug$/,
    '; restore it on the page Servers, or choose another slug',
  ],
  [/^found .*; allowed: (one email address, such as \S+)$/s, 'Enter $1'],
  [
    /^(?:is not a valid webhook URL; allowed: .*|is not a URL)$/,
    'Enter a complete URL, such as https://hooks.example.com/toolhost',
  ],
  [
    /^not a URL; allowed: the https URL of a description$/,
    'Enter a complete address, such as https://api.example.com/openapi.json',
  ],
  [
    /^the document could not be fetched: HTTP (40[13]); .*$/,
    'The address answered HTTP $1. Enter its credential under “URL requires a credential”, or paste the description itself',
  ],
  [
    /^the document could not be fetched: HTTP (\d+); .*$/,
    'The address answered HTTP $1. Check it, or paste the description itself',
  ],
  [
    /^the document could not be fetched: (.*)$/s,
    'The address cannot be read: $1. Check it, or paste the description itself',
  ],
  [/^not an API description; allowed: /, 'This is not an API description. Toolhost reads '],
  [
    /^not JSON and not YAML: .*?( at line \d+, column \d+)?$/s,
    'The text is neither complete JSON nor YAML$1. Check that you copied all of it',
  ],
];

/** Rewrites a message of the service for a person in front of a form. */
export function toScreenTerms(text: string): string {
  return replacements.reduce((current, [pattern, replacement]) => current.replace(pattern, replacement), text);
}
