import { Box, Group, Input, Stack, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { FieldProblem } from '../../api-types.ts';
import { parseJson } from '../../exact-json.ts';
import { asText, isObject, type PathSegment } from '../config.ts';
import { AddButton, IconButton } from './edit-buttons.tsx';
import { Errors, formatErrors, Warnings, withArticle } from './field-messages.tsx';
import { type Edited, getMessages, useDraft, useEditorState, useField, useSaveBlock } from './model/editor-context.ts';

/** Row of an object: a name and its value. */
export type Row<Value> = {
  name: string;
  value: Value;
  index: number;
  /** Name for screen readers. */
  label: string;
  field: Edited;
  errors: readonly string[];
  change: (value: Value) => void;
};

const noProblems: readonly FieldProblem[] = [];

type Props<Value> = {
  field: Edited;
  label: string;
  text: string;
  /** Noun for one row. */
  noun: string;
  placeholder: string;
  /** Value of a new row. A row with this value may stay unnamed. */
  empty: Value;
  isOptional?: boolean;
  /** Name for screen readers of the object that contains the rows, with a dot. */
  prefix?: string;
  /** Content to the right of the name. */
  children: (row: Row<Value>) => ReactNode;
  /** Content below the row. */
  renderBelow?: (row: Row<Value>) => ReactNode;
};

/** Field for an object, with a row for each name and a button that adds one. */
export function NamedRows<Value>(props: Props<Value>) {
  const { field, label, text, noun, placeholder, empty, prefix = '', children, renderBelow } = props;
  const { isTouched, rows, nameProblems, setRows, getErrors, otherErrors } = useRows(props);
  return (
    <Input.Wrapper label={label} description={text} labelElement="div">
      <Stack gap={6} mt={6} id={field.id} tabIndex={-1}>
        {rows.map(([name, value], index) => {
          const change = (next: Value) => setRows(rows.with(index, [name, next]));
          const shownProblem = isTouched ? nameProblems[index] && formatErrors([nameProblems[index]]) : undefined;
          const row = {
            name,
            value,
            index,
            label: name ? `${prefix}${name}` : `${noun} ${index + 1}`,
            field,
            errors: getErrors(name),
            change,
          };
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row has no identity but its index
            <Box key={index} {...(renderBelow && { className: 'th-argument' })}>
              <Group gap={6} align="flex-start">
                <TextInput
                  aria-label={`Name of ${noun} ${index + 1}`}
                  placeholder={placeholder}
                  value={name}
                  flex="1 1 6rem"
                  className="th-mono"
                  error={shownProblem ?? (renderBelow && formatErrors(row.errors))}
                  onBlur={field.touch}
                  onChange={({ currentTarget }) => setRows(rows.with(index, [currentTarget.value, value]))}
                  readOnly={field.isReadOnly}
                />
                {children(row)}
                <IconButton
                  label={`Remove ${noun} ${name || index + 1}`}
                  size="lg"
                  onClick={() => setRows(rows.toSpliced(index, 1))}
                />
              </Group>
              {renderBelow?.(row)}
            </Box>
          );
        })}
        <AddButton onClick={() => setRows([...rows, ['', empty]])}>{`Add ${noun}`}</AddButton>
        <Errors list={otherErrors} />
        <Warnings list={field.warnings} />
      </Stack>
    </Input.Wrapper>
  );
}

/**
 * Represents an object as rows. During input, rows may have duplicate or empty names. If the object changes elsewhere,
 * the rows are replaced.
 */
function useRows<Value>({ field, noun, empty, isOptional = false }: Props<Value>) {
  const isTouched = useEditorState(({ isRevealed, touched }) => isRevealed || touched.has(field.path));
  const problems = useEditorState((state) => (isTouched ? state.problems : noProblems));
  const stored = (isObject(field.value) ? field.value : {}) as { [name: string]: Value };
  const [draft, setDraft] = useDraft<[string, Value][]>();
  const serializeRows = (rowList: readonly [string, Value][]) =>
    JSON.stringify(Object.fromEntries(rowList.filter(([name]) => name !== '')));
  const rows = draft && serializeRows(draft) === JSON.stringify(stored) ? draft : Object.entries(stored);
  const setRows = (next: [string, Value][]) => {
    setDraft(next);
    const object = parseJson(serializeRows(next)) as object;
    field.set(isOptional && Object.keys(object).length === 0 ? undefined : object);
  };
  const nameProblems = rows.map(([name, value], index) => {
    if (name === '') return JSON.stringify(value) === JSON.stringify(empty) ? undefined : 'is required';
    return rows.slice(0, index).some(([previousName]) => previousName === name) ? 'is duplicated' : undefined;
  });
  const firstNameProblem = nameProblems.find((nameProblem) => nameProblem !== undefined);
  useSaveBlock(field.path, firstNameProblem && `the name of ${withArticle(noun)} ${firstNameProblem}`);
  const isRowProblem = (problem: FieldProblem, name: string) =>
    name !== '' && getMessages([problem], `${field.path}.${name}`, true).length > 0;
  const otherProblems = problems.filter((problem) => !rows.some(([name]) => isRowProblem(problem, name)));
  return {
    isTouched,
    rows,
    nameProblems,
    setRows,
    getErrors: (name: string) => (name === '' ? [] : getMessages(problems, `${field.path}.${name}`, true)),
    otherErrors: getMessages(otherProblems, field.path, true),
  };
}

type CellProps = {
  row: Pick<Row<unknown>, 'field' | 'errors'>;
  label: string;
  placeholder: string;
  value: unknown;
  isMono?: boolean;
  onChange: (text: string) => void;
};

/** Text input in a row. */
export function Cell({ row: { field, errors }, label, placeholder, value, isMono = false, onChange }: CellProps) {
  return (
    <TextInput
      aria-label={label}
      placeholder={placeholder}
      value={asText(value)}
      flex="2 1 7rem"
      className={isMono ? 'th-mono' : ''}
      onChange={(event) => onChange(event.currentTarget.value)}
      onBlur={field.touch}
      error={isMono && formatErrors(errors)}
      readOnly={field.isReadOnly}
    />
  );
}

type HeadersProps = { path: readonly PathSegment[]; noun?: string; text?: string };

export function HeadersEditor({ path, noun = 'header', text = 'Sent as written' }: HeadersProps) {
  return (
    <NamedRows<string>
      field={useField(path, true)}
      label={noun === 'header' ? 'Headers' : 'Shared headers'}
      text={`${text}. {{NAME}} is replaced by a variable or secret.`}
      noun={noun}
      placeholder="Accept"
      empty=""
    >
      {(row) => (
        <Cell
          row={row}
          label={`Value of ${noun} ${row.index + 1}`}
          placeholder="application/json"
          value={row.value}
          isMono
          onChange={row.change}
        />
      )}
    </NamedRows>
  );
}
