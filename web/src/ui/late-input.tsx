import { TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useState } from 'react';

type Props = Omit<TextInputProps, 'value' | 'onChange'> & { value: string; onChange: (value: string) => void };

/** Text input that is applied when typing pauses. A new value from elsewhere, such as the URL, replaces the text. */
export function LateInput({ value, onChange, ...rest }: Props) {
  const [typed, setTyped] = useState(value);
  const [taken, setTaken] = useState(value);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    if (value !== taken) setTyped(value);
  }
  const take = useDebouncedCallback(
    (next: string) => {
      setTaken(next);
      onChange(next);
    },
    { delay: 400, flushOnUnmount: false },
  );
  return (
    <TextInput
      className="th-filter"
      autoComplete="off"
      maxLength={100}
      {...rest}
      value={typed}
      onChange={({ currentTarget: { value: next } }) => {
        setTyped(next);
        take(next.trim());
      }}
    />
  );
}

/** Debounced search input for a list. */
export function SearchInput(props: Props) {
  return <LateInput type="search" placeholder="Search" leftSection={<IconSearch size={16} aria-hidden />} {...props} />;
}
