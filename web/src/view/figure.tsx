// A number with its name.

export function Figure({ label, value, tone }: { label: string; value: string; tone?: string }) {
  return <div class={`figure ${tone ?? ''}`}><div class="figure-value">{value}</div><div class="figure-label">{label}</div></div>;
}
