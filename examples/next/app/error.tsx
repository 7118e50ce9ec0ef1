'use client'

export default function Failed() {
  return <p role="alert">Please try again later.</p>
}
