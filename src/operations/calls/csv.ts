type CsvRow = { readonly [column: string]: string | number | undefined };

/** Formats rows as lines of a CSV file (RFC 4180). */
export function csvLines(columns: readonly string[], rows: readonly CsvRow[]): string {
  return rows.map((row) => csvLine(columns.map((column) => row[column]))).join('');
}

export function csvLine(values: readonly CsvRow[string][]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/**
 * Matches characters that begin a formula in a spreadsheet, or that a spreadsheet strips before one (OWASP, CSV
 * injection).
 */
const formulaStart = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** Escapes a cell, so that a text cannot run as a formula. Numbers come from Toolhost itself and need no protection. */
function field(value: string | number | undefined): string {
  if (typeof value !== 'string') return value === undefined ? '' : String(value);
  const text = formulaStart.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
