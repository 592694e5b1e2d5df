import { TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useState } from 'react';

type Props = Omit<TextInputProps, 'value' | 'onChange'> & { value: string; onChange: (value: string) => void };

/** Text input that is applied when the user pauses. A new value from elsewhere, such as the URL, replaces the text. */
export function DebouncedInput({ value, onChange, ...rest }: Props) {
  const [text, setText] = useState(value);
  const [appliedText, setAppliedText] = useState(value);
  const [lastValue, setLastValue] = useState(value);
  if (value !== lastValue) {
    setLastValue(value);
    if (value !== appliedText) setText(value);
  }
  const apply = useDebouncedCallback(
    (next: string) => {
      setAppliedText(next);
      onChange(next);
    },
    { delay: 400, flushOnUnmount: false },
  );
  return (
    <TextInput
      className="th-filter"
      maxLength={100}
      {...rest}
      value={text}
      onChange={({ currentTarget: { value: next } }) => {
        setText(next);
        apply(next.trim());
      }}
    />
  );
}

export function SearchInput(props: Props) {
  return (
    <DebouncedInput type="search" placeholder="Search" leftSection={<IconSearch size={16} aria-hidden />} {...props} />
  );
}
