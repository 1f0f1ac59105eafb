// Numbers, times and names as people read them.

/** @param {number | null | undefined} value */
export function whole(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

/** A number in at most four characters and a unit: 940, 9.4k, 94k, 1.25M. @param {number | null | undefined} value */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 999_500) return `${(value / 1e6).toFixed(size < 9.995e6 ? 2 : 1)}M`;
  if (size >= 1000) return `${(value / 1e3).toFixed(size < 9950 ? 1 : 0)}k`;
  return String(Math.round(value));
}

/** A share in percent. A whole one is never said of what is only nearly so. @param {number | null | undefined} value */
export function percent(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const points = 100 * value;
  if (points > 0 && points < 1) return "< 1 %";
  if (points > 99 && points < 100) return "99 %";
  return `${Math.round(points)} %`;
}

/** Dollars with two digits that say something. @param {number | null | undefined} value */
export function money(value) {
  if (value === null || value === undefined) return "–";
  const digits = value ? Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(Math.abs(value))))) : 2;
  return `$${value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.0995) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** How long ago a time was. @param {string | null | undefined} instant @param {number} now milliseconds */
export function ago(instant, now) {
  if (!instant) return "–";
  const seconds = (now - Date.parse(instant)) / 1000;
  if (!Number.isFinite(seconds)) return instant;
  if (seconds < 45 && seconds > -45) return "now";
  if (seconds < 0) return day(instant);
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 30 * 86_400) return `${Math.round(seconds / 86_400)} days ago`;
  return day(instant);
}

/** The UTC day of a time. @param {string} instant */
export function day(instant) {
  return instant.slice(0, 10);
}

/** The UTC time of day, to a second. @param {string | null | undefined} instant */
export function clock(instant) {
  return instant ? instant.slice(11, 19) : "–";
}

/** @param {number} count @param {string} one @param {string} many */
export function counted(count, one, many = one + "s") {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** Bytes, or characters, in powers of 1,000. @param {number} count */
export function bytes(count) {
  if (count < 1000) return `${count} bytes`;
  if (count < 999_500) return `${(count / 1e3).toFixed(count < 9950 ? 1 : 0)} KB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}

/** Words for a name of the log: `over_trigger` is "over trigger". @param {string | null | undefined} name */
export function spaced(name) {
  return (name ?? "").replaceAll("_", " ");
}

/** The first line of a text, no longer than `most`. @param {string} text @param {number} most */
export function brief(text, most) {
  const line = text.trim().split("\n", 1)[0];
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** A word as a shell takes it. @param {string} word */
export function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}
